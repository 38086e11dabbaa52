import numpy as np
import pytest

from headcount.base.multiply_adds import Lengths, multiply_adds, unit_costs
from headcount.base.settings.model import ModelSettings

HEADS = {"enc_self": [2, 1], "dec_self": [1], "dec_enc": [0]}
SIZES = {"encoder_layers": 2, "decoder_layers": 1, "d_model": 8, "d_ff": 3, "d_head": 4}
SETTINGS = ModelSettings.model_validate({**SIZES, "heads": HEADS})


def product(rows, inner, columns):
    """Return the multiply-adds of a matrix product [rows, inner] · [inner, columns]."""
    return rows * inner * columns


def test_every_head_costs_its_matrix_products():
    n, m, d, e = 5, 6, 8, 4
    encoder = 3 * product(n, d, e) + product(n, e, n) + product(n, n, e) + product(n, e, d)
    seen = sum(range(1, m + 1)) - m / 2  # a target position attends to half of the positions
    decoder = 3 * product(m, d, e) + 2 * seen * e + product(m, e, d)
    assert [*unit_costs(SETTINGS.grid, SETTINGS, Lengths(n, m))] == [encoder] * 3 + [decoder]


def test_a_model_costs_its_layers_and_its_output_layer():
    n, m, d, f, v = 5, 6, 8, 3, 11
    heads = unit_costs(SETTINGS.grid, SETTINGS, Lengths(n, m)).sum()
    wide = 2 * (product(n, d, f) + product(n, f, d)) + product(m, d, f) + product(m, f, d)
    whole = multiply_adds(SETTINGS, v, Lengths(n, m))
    assert whole == pytest.approx(heads + wide + product(m, d, v))


def test_cross_attention_projects_source_and_target():
    n, m, d, e = 5.5, 3.5, 8, 4
    settings = ModelSettings.model_validate({**SIZES, "heads": {**HEADS, "dec_enc": [1]}})
    cost = unit_costs(settings.grid, settings, Lengths(n, m))[-1]
    projected = 2 * product(m, d, e) + 2 * product(n, d, e)
    assert np.isclose(cost, projected + product(m, e, n) + product(m, n, e))
