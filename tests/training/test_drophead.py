"""The DropHead family: how many heads a draw masks, and what the heads that are left count."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from head_masks import make_mask
from small_models import TEXT, UNEVEN

from headcount.base.addresses import HeadGrid
from headcount.base.settings.train import TrainSettings
from headcount.data.batches import collate

GRID = HeadGrid(UNEVEN)  # eight layers of 1 to 3 heads, 17 heads in all
EVEN = HeadGrid({"enc_self": (4, 4), "dec_self": (4,), "dec_enc": (4,)})
SETTINGS = TrainSettings(updates=100, warmup_updates=20)
BATCHES = [collate(TEXT, [0, 2]), collate(TEXT, [1])]
DRAWS = 4000


def drawn(name, update=100, grid=EVEN, sentences=DRAWS):
    """Multipliers [sentences, heads] of one update; a batch has three."""
    batches = [collate(TEXT, [0] * sentences)]
    return make_mask(name, grid, SETTINGS).choose(None, batches, update).multiplier.double()


def near(found, expected, spread, draws=DRAWS):
    """Within 4.5 standard errors."""
    return (abs(found - expected) <= 4.5 * spread / math.sqrt(draws) + 1e-12).all()


# The share of N or p at the updates 1, 10, 20, 21, 60 and 100 of 100, with 20 of warm-up.
SHARES = {
    "constant": [1, 1, 1, 1, 1, 1],
    "linear": [0.01, 0.1, 0.2, 0.21, 0.6, 1],
    "v": [0.95, 0.5, 0, 1 / 80, 0.5, 1],
}
UPDATES = [1, 10, 20, 21, 60, 100]


@pytest.mark.parametrize("schedule", SHARES)
def test_a_schedule_scales_the_expected_number_of_masked_heads(schedule):
    for update, share in zip(UPDATES, SHARES[schedule], strict=True):
        masked = (drawn(f"drophead-0.3-{schedule}", update) == 0).double().mean(0)
        p = 0.3 * share
        assert near(masked, p, math.sqrt(p * (1 - p)))
        # N is the nearest whole number, halves up, and 3 in each of four layers.
        for name, heads, layers in (("random-5", 5, 1), ("random-3-layer", 3, 4)):
            count = (drawn(f"{name}-sentence-{schedule}", update, sentences=9) == 0).sum(1)
            assert set(count.tolist()) == {layers * math.floor(heads * share + 0.5)}


def test_masks_per_layer_draw_every_head_of_a_layer_alike():
    masked = drawn("random-1-layer-sentence") == 0
    assert (masked.view(DRAWS, 4, 4).sum(2) == 1).all()
    assert near(masked.double().mean(0), 1 / 4, math.sqrt(3) / 4)


def test_heads_of_drophead_are_independent_within_and_between_sentences():
    """The number of masked heads of a sentence is binomial."""
    masked = (drawn("drophead-0.25", sentences=20_000) == 0).double()
    count = masked.sum(1)
    assert float(count.var()) == pytest.approx(16 * 0.25 * 0.75, rel=0.06)
    both = (masked[:-1] * masked[1:]).mean(0)
    assert near(both, 1 / 16, 0.25, 20_000)


@pytest.mark.parametrize(
    ("name", "none_left"),
    [
        ("drophead-0.5", 0.5**4),  # each head by itself: H / left · P(on) is 1 − P(none left)
        ("drophead-0.2", 0.2**4),
        ("random-1-layer-rescaled-sentence", 0),  # always three left
        ("random-3-layer-rescaled-sentence", 0),
        ("random-4-layer-rescaled-sentence", 1),
        ("random-12-rescaled-sentence", math.comb(12, 8) / math.comb(16, 12)),
    ],
)
def test_rescaled_heads_add_up_to_the_layer_unless_none_is_left(name, none_left):
    """So the expected multiplier of every head is 1 − P(none left), and 1 where that is 0."""
    multiplier = drawn(name).view(DRAWS, 4, 4)
    sums = multiplier.sum(2)
    assert set(sums.unique().round(decimals=5).tolist()) <= {0.0, 4.0}
    assert all(len(row.unique()) <= 2 for row in multiplier[:50].flatten(0, 1))
    expected = 1 - none_left
    assert near(multiplier.mean(0), expected, float(multiplier.std()) or 0)
    plain = drawn(name.replace("rescaled-", "") if "rand" in name else f"{name}-unscaled")
    assert torch.equal(plain == 0, multiplier.flatten(1) == 0)
    assert set(plain.unique().tolist()) <= {0.0, 1.0}


def test_rescaling_follows_the_sizes_of_uneven_layers():
    """A layer without a head left stays 0."""
    mask = make_mask("random-6-rescaled", GRID, SETTINGS)
    seen = Counter()
    for update in range(1, 60):
        multiplier = mask.choose(None, [], update).multiplier
        for kind, layer, span in GRID.layers():
            row = multiplier[span]
            left = int((row > 0).sum())
            factors = [UNEVEN[kind][layer] / left] * left if left else []
            assert row[row > 0].tolist() == pytest.approx(factors)
            seen[len(row), left] += 1
    assert {(1, 0), (1, 1), (2, 0), (2, 1), (3, 1), (3, 2), (3, 3)} <= set(seen)


def test_every_sentence_has_draws_of_its_own_by_seed_and_update():
    mask = make_mask("random-5-sentence", GRID, SETTINGS)
    first = mask.choose(None, BATCHES, 1)
    assert first.multiplier.shape == (3, 17)
    assert len({tuple(row) for row in first.multiplier.tolist()}) == 3
    assert sum(first.masked) == pytest.approx(5)  # shares of the sentences
    assert first.masked == (first.multiplier == 0).double().mean(0).tolist()
    again = make_mask("random-5-sentence", GRID, SETTINGS).choose(None, BATCHES, 1)
    assert torch.equal(again.multiplier, first.multiplier)
    others = [mask.choose(None, BATCHES, 2)]
    others += [make_mask("random-5-sentence", GRID, SETTINGS, 9).choose(None, BATCHES, 1)]
    assert not any(torch.equal(other.multiplier, first.multiplier) for other in others)


def test_the_first_draw_of_an_update_is_that_of_its_only_one():
    for name in ("random-5", "random-1-layer"):
        one = make_mask(name, GRID, SETTINGS).choose(None, BATCHES, 7).multiplier
        several = make_mask(f"{name}-sentence", GRID, SETTINGS).choose(None, BATCHES, 7).multiplier
        assert torch.equal(several[0], one)
    one = make_mask("drophead-0.4-update", GRID, SETTINGS).choose(None, BATCHES, 7).multiplier
    several = make_mask("drophead-0.4", GRID, SETTINGS).choose(None, BATCHES, 7).multiplier
    assert torch.equal(several[0], one) and one.ndim == 1


@pytest.mark.parametrize("name", ["drophead-0.4-after2", "random-4-sentence-rescaled-after2"])
def test_masks_begin_late(name):
    mask = make_mask(name, GRID, SETTINGS)
    found = [np.array(mask.choose(None, BATCHES, update).masked).sum() for update in range(1, 5)]
    assert found[:2] == [0, 0] and min(found[2:]) > 0
