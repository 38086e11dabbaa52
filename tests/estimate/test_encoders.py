"""Sizes of a classifier's encoder, and the operations of a layer."""

import json

import pytest

from headcount.base.errors import UserError
from headcount.estimate.encoders import BERT_BASE, Encoder


def test_operations_are_two_for_each_weight_three_times_over():
    """Width 2, inner 3: four times 4 weights and twice 6 are 28; 6 · 28 · 10 subwords."""
    assert Encoder(5, 1, 2, 3).teraflops(10) == pytest.approx(1680e-12)
    assert BERT_BASE.grid.size == 144


@pytest.mark.parametrize(
    "told",
    [
        {"num_hidden_layers": 2, "num_attention_heads": 3,
         "hidden_size": 24, "intermediate_size": 48},
        {"n_layers": 2, "n_heads": 3, "dim": 24, "hidden_dim": 48},
    ],
    ids=["bert", "distilbert"],
)  # fmt: skip
def test_sizes_are_read_by_the_librarys_names(tmp_path, told):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(told))
    assert Encoder.read(path) == Encoder(layers=2, heads=3, width=24, inner=48)
    path.write_text(json.dumps(dict(list(told.items())[:2])))
    with pytest.raises(UserError, match=r"config\.json: expected hidden_size or dim, found neith"):
        Encoder.read(path)
