"""Multipliers of feed-forward units and layers, and models without them."""

import copy

import numpy as np
import pytest
import torch
from small_models import TEXT, UNEVEN, make_model, one_pair

from headcount.base.addresses import Head
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.heads import ImportanceSettings
from headcount.heads.importance import measure_importance, sentence_slopes
from headcount.model.loss import summed_loss
from headcount.model.removal import remove_units, widen
from headcount.model.units import UnitTransformer
from headcount.search.beam_search import translate
from headcount.training.score import score_targets

DECODE = DecodeSettings(beam=3, max_length_factor=1.0, max_length_extra=4, batch_tokens=30)
BATCH = TEXT.batch([0, 1, 2])


@pytest.fixture(params=["pre", "post"])
def model(request):
    return make_model(heads=UNEVEN, norm=request.param)


@pytest.fixture
def units(model):
    return UnitTransformer.of(model)


def mask_of(units, *names):
    return torch.from_numpy(units.grid.mask(map(Head.parse, names)))


def test_heads_keep_their_places_before_other_units(model, units):
    assert units.grid.heads()[: model.grid.size] == model.grid.heads()
    settings = model.settings
    others = (settings.encoder_layers + settings.decoder_layers) * (settings.d_ff + 1)
    assert units.grid.size == model.grid.size + others


def test_ones_change_no_bit(model, units):
    ones = torch.ones(3, units.grid.size)
    assert torch.equal(score_targets(model, TEXT, 20), score_targets(units, TEXT, 20, ones))
    assert translate(model, TEXT.src, DECODE) == translate(units, TEXT.src, DECODE, ones)


def test_a_masked_feed_forward_unit_is_a_zero_column(model, units):
    without = copy.deepcopy(model)
    with torch.no_grad():
        without.decoder[1].feed_forward.outer.weight[:, 3] = 0
    found = score_targets(units, TEXT, 20, mask_of(units, "dec_ffn.1.3"))
    torch.testing.assert_close(found, score_targets(without, TEXT, 20), atol=1e-6, rtol=0)
    assert (found - score_targets(model, TEXT, 20)).abs().max() > 1e-6  # it took part before


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_a_masked_layer_is_skipped(model, units, side):
    """The layers around it run one after the other."""
    without = copy.deepcopy(model)
    layers = getattr(without, side)
    del layers[1]
    found = score_targets(units, TEXT, 20, mask_of(units, f"{side[:3]}_layer.1"))
    without.grid = type(model.grid)({})  # is not asked for without a multiplier
    for number, layer in enumerate(layers):
        layer.number = number
    torch.testing.assert_close(found, score_targets(without, TEXT, 20), atol=1e-5, rtol=0)


def some_gates(units):
    """Multipliers of heads and feed-forward units from 0 to 1, a third of them 0, of layers 1."""
    draws = np.random.default_rng(2).uniform(-0.5, 1, units.grid.size).clip(0)
    layers = [unit.kind.endswith("layer") for unit in units.grid.heads()]
    draws[layers] = 1
    draws[units.grid.span("enc_ffn", 0)] = 0  # all of one layer
    return torch.from_numpy(draws).float()


@pytest.mark.parametrize("dropped", [[], ["enc_layer.1"], ["dec_layer.0", "enc_layer.0"]])
def test_removed_is_masked(units, dropped):
    multiplier = some_gates(units) * mask_of(units, *dropped)
    smaller = remove_units(units, multiplier)
    scores = score_targets(units, TEXT, 20, multiplier)
    torch.testing.assert_close(score_targets(smaller, TEXT, 20), scores, atol=1e-5, rtol=0)
    masked = translate(units, TEXT.src, DECODE, multiplier)
    for removed, found in zip(translate(smaller, TEXT.src, DECODE), masked, strict=True):
        assert removed.ids == found.ids
    assert smaller.settings.encoder_layers + smaller.settings.decoder_layers == (
        units.settings.encoder_layers + units.settings.decoder_layers - len(dropped)
    )
    left = sum(map(sum, smaller.settings.ffn_widths.values()))
    kept = [u for u, gate in zip(units.grid.heads(), multiplier, strict=True) if gate]
    gone = [name.replace("_layer", "") for name in dropped]
    kept = [u for u in kept if "ffn" in u.kind and f"{u.kind[:3]}.{u.layer}" not in gone]
    assert left == len(kept)
    assert len(units.grid.heads_left(multiplier.numpy())) == smaller.grid.size


def test_a_layer_by_half_cannot_be_removed(units):
    half = torch.ones(units.grid.size)
    half[units.grid.span("enc_layer", 0)] = 0.5
    with pytest.raises(ValueError, match="enc_layer"):
        remove_units(units, half)


def test_added_units_change_nothing(units):
    smaller = remove_units(units, some_gates(units))
    widths = {kind: [30] * len(layers) for kind, layers in smaller.settings.ffn_widths.items()}
    wide = widen(smaller, widths)
    assert wide.settings.ffn_widths == {"enc_ffn": (30,) * 2, "dec_ffn": (30,) * 3}
    torch.testing.assert_close(
        score_targets(smaller, TEXT, 20), score_targets(wide, TEXT, 20), atol=1e-5, rtol=0
    )


def test_importance_is_the_finite_difference(units):
    """Of one unit of every kind: (L(1 + h) − L(1 − h)) / 2h, in fp64."""
    units.double()
    slopes, _ = sentence_slopes(units, BATCH)
    heads = ("enc_self.0.1", "dec_enc.1.0")
    for name in (*heads, "enc_ffn.0.2", "dec_ffn.1.5", "enc_layer.1", "dec_layer.0"):
        place, step = units.grid.index(Head.parse(name)), 1e-5
        losses = []
        for change in (step, -step):
            multiplier = torch.ones(units.grid.size, dtype=torch.float64)
            multiplier[place] += change
            with torch.no_grad():
                losses.append(summed_loss(units, BATCH, multiplier).item())
        expected = (losses[0] - losses[1]) / (2 * step)
        assert slopes[:, place].sum().item() == pytest.approx(expected, rel=1e-5, abs=1e-8)


def test_heads_are_as_important_as_without_other_units(model, units):
    settings = ImportanceSettings(batch_tokens=20)
    found = measure_importance(units, TEXT, settings)[: model.grid.size]
    np.testing.assert_array_equal(found, measure_importance(model, TEXT, settings))


def test_each_sentence_has_its_own_row(units):
    rows = torch.rand(3, units.grid.size, generator=torch.Generator().manual_seed(1))
    scores = score_targets(units, TEXT, 100, rows)
    start = 0
    for number in range(3):
        alone = score_targets(units, one_pair(TEXT, number), 100, rows[number])
        found = scores[start : (start := start + len(alone))]
        torch.testing.assert_close(found, alone, atol=1e-5, rtol=0)
