"""The DropHead family: how many heads a draw masks, and what the heads that are left count."""

import math
from collections import Counter

import pytest
import torch
from small_models import TEXT, UNEVEN

from headcount.base.addresses import HeadGrid
from headcount.base.settings.train import TrainSettings
from headcount.base.settings.training_runs import RunSettings
from headcount.data.batches import collate
from headcount.training.headmask import make_head_mask

GRID = HeadGrid(UNEVEN)  # eight layers of 1 to 3 heads, 17 heads in all
EVEN = HeadGrid({"enc_self": (4, 4), "dec_self": (4,), "dec_enc": (4,)})
SETTINGS = TrainSettings(updates=100, warmup_updates=20)
BATCHES = [collate(TEXT, [0, 2]), collate(TEXT, [1])]
DRAWS = 4000


def make(seed=2, grid=GRID, **run):
    """A DropHead run if there is a probability, else Random-N."""
    method = "drophead" if "head_probability" in run else "random"
    return make_head_mask(RunSettings(method=method, **run), grid, SETTINGS, seed)


def drawn(update=100, sentences=DRAWS, **run):
    """Multipliers [sentences, heads] of one update."""
    batches = [collate(TEXT, [0] * sentences)]
    mask = make(grid=EVEN, **{"draw": "sentence", **run})
    return mask.choose(None, batches, update).multiplier.double()


def near(found, expected, spread, draws=DRAWS):
    """Within 4.5 standard errors."""
    return (abs(found - expected) <= 4.5 * spread / math.sqrt(draws) + 1e-6).all()


# The share of N or p at these updates of 100, with 20 of warm-up.
UPDATES = [1, 10, 20, 21, 60, 100]
SHARES = {
    "constant": [1, 1, 1, 1, 1, 1],
    "linear": [0.01, 0.1, 0.2, 0.21, 0.6, 1],
    "v": [0.95, 0.5, 0, 1 / 80, 0.5, 1],
}


@pytest.mark.parametrize("schedule", SHARES)
def test_a_schedule_scales_the_expected_number_of_masked_heads(schedule):
    for update, share in zip(UPDATES, SHARES[schedule], strict=True):
        masked = (drawn(update, head_probability=0.3, schedule=schedule) == 0).double().mean(0)
        p = 0.3 * share
        assert near(masked, p, math.sqrt(p * (1 - p)))
        # N is the nearest whole number, halves up, in the model or in each of four layers.
        for heads, scope, layers in ((5, "model", 1), (3, "layer", 4)):
            counts = (drawn(update, 9, heads=heads, scope=scope, schedule=schedule) == 0).sum(1)
            assert set(counts.tolist()) == {layers * math.floor(heads * share + 0.5)}


def test_masks_per_layer_draw_every_head_of_a_layer_alike():
    masked = drawn(heads=1, scope="layer") == 0
    assert (masked.view(DRAWS, 4, 4).sum(2) == 1).all()
    assert near(masked.double().mean(0), 1 / 4, math.sqrt(3) / 4)


def test_heads_of_drophead_are_independent_within_and_between_sentences():
    """The number of masked heads of a sentence is binomial."""
    masked = (drawn(sentences=20_000, head_probability=0.25) == 0).double()
    assert float(masked.sum(1).var()) == pytest.approx(16 * 0.25 * 0.75, rel=0.06)
    assert near((masked[:-1] * masked[1:]).mean(0), 1 / 16, 0.25, 20_000)


@pytest.mark.parametrize(
    ("run", "none_left"),
    [
        ({"head_probability": 0.5}, 0.5**4),  # the four heads of a layer, each by itself
        ({"head_probability": 0.2}, 0.2**4),
        ({"heads": 1, "scope": "layer"}, 0),
        ({"heads": 3, "scope": "layer"}, 0),
        ({"heads": 4, "scope": "layer"}, 1),
        ({"heads": 12}, math.comb(12, 8) / math.comb(16, 12)),  # 8 of the other 12
    ],
)
def test_rescaled_heads_add_up_to_the_layer_unless_none_is_left(run, none_left):
    """So the expected multiplier of every head is 1 − P(none left), and 1 where that is 0."""
    multiplier = drawn(**run, rescale="layer")
    layers = multiplier.view(DRAWS, 4, 4)
    assert set(layers.sum(2).round().unique().tolist()) <= {0.0, 4.0}
    assert near(layers.mean(0), 1 - none_left, float(multiplier.std()))
    plain = drawn(**run, rescale="none")
    assert torch.equal(plain == 0, multiplier == 0)
    assert set(plain.unique().tolist()) <= {0.0, 1.0}
    share = run.get("head_probability", run.get("heads", 0) / (4 if "scope" in run else 16))
    assert near(plain.mean(0), 1 - share, 0.5)


def test_rescaling_follows_the_sizes_of_uneven_layers():
    """A layer without a head left stays 0."""
    mask, seen = make(heads=6, rescale="layer"), Counter()
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
    run = {"heads": 5, "draw": "sentence"}
    first, again = (make(**run).choose(None, BATCHES, 1) for _ in range(2))
    assert first.multiplier.shape == (3, 17) and torch.equal(again.multiplier, first.multiplier)
    assert len({tuple(row) for row in first.multiplier.tolist()}) == 3
    assert first.masked == (first.multiplier == 0).double().mean(0).tolist()
    assert sum(first.masked) == pytest.approx(5)  # shares of the sentences
    for other in (make(**run).choose(None, BATCHES, 2), make(9, **run).choose(None, BATCHES, 1)):
        assert not torch.equal(other.multiplier, first.multiplier)


@pytest.mark.parametrize(
    "run", [{"heads": 5}, {"heads": 1, "scope": "layer"}, {"head_probability": 0.4}]
)
def test_the_first_sentence_has_the_draw_of_an_update_with_one(run):
    one, several = (
        make(**run, draw=draw).choose(None, BATCHES, 7).multiplier
        for draw in ("update", "sentence")
    )
    assert torch.equal(several[0], one) and one.ndim == 1


@pytest.mark.parametrize("run", [{"head_probability": 0.4}, {"heads": 4, "draw": "sentence"}])
def test_masks_begin_late(run):
    mask = make(**run, start_update=2)
    found = [sum(mask.choose(None, BATCHES, update).masked) for update in range(1, 5)]
    assert found[:2] == [0, 0] and min(found[2:]) > 0
