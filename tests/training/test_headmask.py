"""Which heads an update masks: the distribution of Random-N, the ranking of Impt-N."""

import itertools
import math

import numpy as np
import pytest
import torch
from named_runs import RUNS
from small_models import TEXT, UNEVEN, make_model, token_slopes

from headcount.analysis.collapse import masking_updates
from headcount.base.addresses import HeadGrid
from headcount.base.settings.heads import ImportanceSettings
from headcount.base.settings.train import TrainSettings
from headcount.base.settings.training_runs import RunSettings
from headcount.data.batches import collate, in_order
from headcount.heads.importance import (
    BatchImportance,
    batch_importance,
    measure_importance,
    sentence_slopes,
)
from headcount.model.loss import token_losses
from headcount.training import headmask
from headcount.training.headmask import make_head_mask

HEADS = 17  # of UNEVEN
GRID = HeadGrid(UNEVEN)
BATCHES = [collate(TEXT, [0, 2]), collate(TEXT, [1])]
SMOOTHING = 0.2


def make(run, seed=3, smoothing=SMOOTHING):
    settings = TrainSettings(label_smoothing=smoothing)
    return make_head_mask(RUNS[run] if isinstance(run, str) else run, GRID, settings, seed)


def impt(heads, **keys):
    return RunSettings(method="importance", heads=heads, **keys)


def masked(choice):
    return {position for position, silent in enumerate(choice.masked) if silent}


@pytest.fixture
def model():
    return make_model(heads=UNEVEN).double().train()


def near(found, expected, draws):
    """Whether shares are within 4.5 standard deviations of a probability."""
    return (abs(found - expected) < 4.5 * math.sqrt(expected * (1 - expected) / draws)).all()


@pytest.mark.slow
def test_random_draws_every_set_of_heads_alike():
    sampler, draws = make("random-5"), 6000
    table = np.array([sampler.choose(None, [], update).masked for update in range(1, draws + 1)])
    assert (table.sum(1) == 5).all()
    assert near(table.mean(0), 5 / 17, draws)
    pairs = [(table[:, a] & table[:, b]).mean() for a, b in itertools.combinations(range(17), 2)]
    assert near(np.array(pairs), 5 * 4 / (17 * 16), draws)
    # A head masked now is no likelier to be masked next.
    assert near((table[:-1] & table[1:]).mean(0), (5 / 17) ** 2, draws)


def test_random_heads_rest_and_the_draw_is_as_even_as_it_can_be():
    """17 heads, 4 an update, each at rest for three updates: any four in a row mask 16 of them.

    An update draws 4 of the 5 that are free: the 4 of four updates before and one more.
    """
    sampler, draws = make("random-4-rest3"), 1000
    table = np.array([sampler.choose(None, [], update).masked for update in range(1, draws + 1)])
    assert (table.sum(1) == 4).all()
    windows = [table[first : first + 4].sum(0) for first in range(draws - 3)]
    assert all(sorted(window) == [0] + 16 * [1] for window in windows)
    again = np.array([(table[n] & table[n + 4]).sum() for n in range(draws - 4)])
    assert set(again) == {3, 4}
    assert near((again == 4).mean(), 1 / 5, draws)
    first = make("random-4").choose(None, [], 1).masked
    assert table[0].tolist() == first  # the first update has all heads to draw from


def test_f06_none_and_all():
    assert make("baseline").choose(None, [], 1).multiplier is None
    assert make("random-0").choose(None, [], 1).multiplier.tolist() == [1] * 17
    assert make("random-17").choose(None, [], 1).multiplier.tolist() == [0] * 17


@pytest.fixture(scope="module")
def slopes():
    """∂L/∂ξ [sentences, heads] of the smoothed loss, sentence by sentence, by differences."""
    model = make_model(heads=UNEVEN).double()
    return torch.stack([token_slopes(model, number, SMOOTHING).sum(1) for number in range(3)])


@pytest.mark.parametrize("batches", [BATCHES[:1], BATCHES])
def test_impt_masks_the_largest_of_the_very_batches(model, slopes, batches):
    sentences = [number for batch in batches for number in batch.indices]
    importance = slopes[sentences].abs().mean(0)
    order = importance.argsort(descending=True).tolist()
    for count in (0, 1, 5, 16, 17):
        choice = make(impt(count)).choose(model, batches, 1)
        assert masked(choice) == set(order[:count])
    with torch.no_grad():
        expected = sum(token_losses(model.eval(), b, None, SMOOTHING).sum() for b in batches)
    assert choice.first_pass.loss == pytest.approx(float(expected), rel=1e-9)


def test_signed_masks_the_most_helpful_and_never_a_harmful_head(model, slopes):
    # Masking takes ξ from 1 to 0, so the loss grows by about −∂L/∂ξ.
    growth = -slopes.sum(0)
    helpful = [head for head in growth.argsort(descending=True).tolist() if growth[head] > 0]
    assert 3 < len(helpful) < HEADS
    for count in (2, len(helpful), HEADS):
        choice = make(impt(count, signed=True)).choose(model, BATCHES, 1)
        assert masked(choice) == set(helpful[:count])
    assert masked(make("impt-2").choose(model, BATCHES, 1)) != set(helpful[:2])


@pytest.mark.parametrize("unit", ["batch", "token"])
def test_impt_by_batch_or_token_ranks_by_their_sizes(model, slopes, unit):
    """Derivatives with opposite signs cancel in a batch, and those of tokens do not."""
    silent = make_model(heads=UNEVEN).double()  # the same, without dropout
    tokens = [token_slopes(silent, number, SMOOTHING) for number in range(3)]
    for batches in ([collate(TEXT, [0, 1, 2])], BATCHES):
        if unit == "batch":
            sizes = sum(slopes[batch.indices].sum(0).abs() for batch in batches)
        else:
            sizes = sum(part.abs().sum(1) for part in tokens)
        order = sizes.argsort(descending=True).tolist()
        for count in (1, 4, 9, 13):
            choice = make(impt(count, unit=unit)).choose(model, batches, 1)
            assert masked(choice) == set(order[:count])
        torch.testing.assert_close(choice.first_pass.importance, sizes / 3, atol=1e-7, rtol=1e-6)
        assert (abs(sizes - slopes.abs().sum(0)) > 0.01).any()  # some do cancel


def test_impt_by_position_ranks_as_the_measured_importance_does(model):
    """Of the loss without smoothing, that the measurement takes."""
    settings = ImportanceSettings(abs="position")
    measured = measure_importance(model, TEXT, settings)
    (batch,) = in_order(TEXT, 10**6, torch.device("cpu"))
    order = (-measured).argsort(kind="stable").tolist()
    for count in (1, 5, 11):
        choice = make(impt(count, unit="position"), smoothing=0).choose(model, [batch], 1)
        assert masked(choice) == set(order[:count])


UNITS = [{"unit": unit} for unit in ("sentence", "batch", "position", "token")]


@pytest.mark.parametrize("keys", [*UNITS, {"signed": True}, {"decay": 0.5}])
def test_a_first_pass_adds_up_the_slopes_of_single_sentences(model, slopes, keys):
    """By differences, and sentence by sentence through `sentence_slopes`; whatever ranks."""
    first = make(impt(4, **keys)).choose(model, BATCHES, 1).first_pass
    alone = [sentence_slopes(model, collate(TEXT, [n]), SMOOTHING)[0][0] for n in range(3)]
    for rows, close in ((slopes, 1e-7), (torch.stack(alone), 1e-12)):
        torch.testing.assert_close(first.slopes, rows.sum(0), atol=close, rtol=1e-6)
        torch.testing.assert_close(first.squares, rows.square().sum(0), atol=close, rtol=1e-6)
    assert first.sentences == 3
    expected = {"sentence": slopes.abs().mean(0), True: -slopes.mean(0)}
    for value in expected.keys() & keys.values():
        torch.testing.assert_close(first.importance, expected[value], atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize("kind", ["enc_self", "dec_self", "dec_enc"])
def test_a_spared_kind_is_never_masked(model, slopes, kind):
    """The others go in the order that they have without it, down to the last of them."""
    order = slopes.abs().mean(0).argsort(descending=True).tolist()
    heads = GRID.heads()
    others = [position for position in order if heads[position].kind != kind]
    assert others != order[: len(others)]
    for count in (0, 1, 5, len(others)):
        choice = make(impt(count, exclude_kind=kind)).choose(model, BATCHES, 1)
        assert masked(choice) == set(others[:count])
        held = make(impt(count, exclude_kind=kind, warmup_mask_updates=3)).choose(model, BATCHES, 3)
        assert len(masked(held)) == count and masked(held) <= set(others)


def test_heads_are_held_masked_in_the_first_updates_and_measured_all_the_same(model):
    rule, sampler = make("impt-4-p0.3-ema0.9"), make("impt-4-p0.3-ema0.9-held5")
    found = [sampler.choose(model, BATCHES, update) for update in range(1, 31)]
    held = masked(found[0])
    assert len(held) == 4 and all(masked(choice) == held for choice in found[:5])
    assert all(choice.first_pass for choice in found[:5])
    important = masked(make("impt-4").choose(model, BATCHES, 1))
    assert held != important  # so that the next lines can fail
    # From the sixth on the rule decides; the weights are the same in every update here.
    later = [rule.choose(model, BATCHES, update) for update in range(6, 31)]
    assert [masked(choice) for choice in found[5:]] == [masked(choice) for choice in later]
    assert {frozenset(masked(choice)) for choice in later} == {frozenset(), frozenset(important)}


def test_which_heads_are_held_follows_the_seed_alone(monkeypatch):
    monkeypatch.setattr(headmask, "batch_importance", lambda *_: found(torch.ones(HEADS)))

    def held(name, seed):
        return masked(make(name, seed).choose(None, BATCHES, 1))

    drawn = [held("impt-4-held2", seed) for seed in range(400)]
    assert drawn[7] == held("impt-4-held200", 7) == held("impt-4-p0.5-signed-held1", 7)
    often = np.array([[head in each for head in range(HEADS)] for each in drawn]).mean(0)
    assert near(often, 4 / 17, 400)


def test_random_masks_begin_late_and_are_those_of_the_update():
    late, plain = make("random-5-after2"), make("random-5")
    found = [late.choose(None, [], update).masked for update in range(1, 6)]
    assert found[:2] == [[False] * HEADS] * 2
    assert found[2:] == [plain.choose(None, [], update).masked for update in (3, 4, 5)]


def test_updates_before_masking_begins_and_the_average_over_updates(model):
    """No pass in updates 1 to 3, then two with held heads, whose importance is averaged in."""
    first, second = (batch_importance(model, b, smoothing=SMOOTHING).importance for b in BATCHES)
    averaged, latest = (
        importance.argsort(descending=True).tolist()
        for importance in (0.75 * 0.25 * first + 0.25 * second, second)
    )
    count = next(n for n in range(1, HEADS) if set(averaged[:n]) != set(latest[:n]))
    chooser = make(impt(count, decay=0.75, warmup_mask_updates=1, start_update=3))
    choices = [chooser.choose(model, BATCHES[:1], update) for update in (1, 2, 3, 4)]
    assert all(c.masked == [False] * HEADS and c.first_pass is None for c in choices[:3])
    held = make(impt(count, warmup_mask_updates=1)).choose(model, BATCHES, 1)
    assert choices[3].first_pass and masked(choices[3]) == masked(held)
    assert masked(chooser.choose(model, BATCHES[1:], 5)) == set(averaged[:count])


def found(importance):
    """What a first pass over one sentence might find, its slopes the importance."""
    return BatchImportance(importance, importance[None], torch.tensor(1.0))


@pytest.mark.parametrize(
    ("rest", "keys"), [(1, {}), (3, {}), (2, {"signed": True}), (2, {"exclude_kind": "dec_self"})]
)
def test_heads_rest_after_they_were_masked(model, slopes, rest, keys):
    """The weights stay, so each update masks the next heads of one ranking, then the first again.

    Signed, 4 heads at a time: where harmful heads alone are left, fewer are masked, and none.
    """
    score = -slopes.mean(0) if "signed" in keys else slopes.abs().mean(0)
    spared = {at for at, head in enumerate(GRID.heads()) if head.kind in keys.values()}
    order = [h for h in score.argsort(descending=True).tolist() if h not in spared]
    order = [h for h in order if score[h] > 0]
    assert 4 < len(order) < HEADS if keys else len(order) == HEADS
    blocks = [set(order[4 * block : 4 * block + 4]) for block in range(rest + 1)]
    sampler = make(impt(4, **keys, cooldown_updates=rest, start_update=10))
    found = [masked(sampler.choose(model, BATCHES, 11 + number)) for number in range(3 * rest + 3)]
    assert found == 3 * blocks
    assert masked(make(impt(4, **keys)).choose(model, BATCHES, 12)) == blocks[0]


def test_equal_importances_are_masked_in_flat_order(monkeypatch):
    monkeypatch.setattr(headmask, "batch_importance", lambda *_: found(torch.ones(HEADS)))
    assert masked(make("impt-4").choose(None, BATCHES, 1)) == {0, 1, 2, 3}
    # UNEVEN has 5 heads in the encoder, then 6 in decoder self-attention.
    assert masked(make("impt-4-spare_enc_self").choose(None, BATCHES, 1)) == {5, 6, 7, 8}
    silent = make("impt-4-signed")
    monkeypatch.setattr(headmask, "batch_importance", lambda *_: found(torch.zeros(HEADS)))
    assert masked(silent.choose(None, BATCHES, 1)) == set()  # a slope of 0 helps nobody


def test_p_masks_in_its_share_of_the_updates_and_measures_in_no_other(monkeypatch):
    calls = []

    def measure(*arguments):
        calls.append(arguments)
        return found(torch.arange(HEADS))

    monkeypatch.setattr(headmask, "batch_importance", measure)
    sampler = make("impt-2-p0.3")
    choices = [sampler.choose(None, BATCHES[:1], update) for update in range(1, 2001)]
    masking = [choice for choice in choices if choice.first_pass]
    assert len(calls) == len(masking)
    assert all(masked(choice) == {15, 16} for choice in masking)
    assert all(masked(choice) == set() for choice in choices if not choice.first_pass)
    assert near(np.array(len(masking) / 2000), 0.3, 2000)


def test_f41_a_first_pass_leaves_the_model_as_it_was(model):
    token_losses(model, BATCHES[0]).sum().backward()  # a gradient, to see whether it stays
    weights = [w.detach().clone() for w in model.parameters()]
    gradients = [w.grad.clone() for w in model.parameters()]
    random = torch.get_rng_state()
    for name in (
        "impt-3",
        "impt-3-signed",
        "impt-3-batch",
        "impt-3-position-ema0.5",
        "impt-3-token",
    ):
        make(name).choose(model, BATCHES, 1)
    assert torch.equal(torch.get_rng_state(), random)
    assert all(module.training for module in model.modules())
    for weight, before, gradient in zip(model.parameters(), weights, gradients, strict=True):
        assert torch.equal(weight, before) and torch.equal(weight.grad, gradient)
        assert weight.requires_grad


@pytest.mark.parametrize(
    "name", ["impt-3-p0.5", "impt-3-after4", "impt-3-held5-after4", "impt-3-p0.5-held5-after4"]
)
def test_updates_that_mask_are_counted_as_training_masks(model, name):
    """Tables count these updates from the settings alone; here training itself does."""
    chooser, ends = make(name), np.array([3, 6, 12, 24])
    masks = [bool(masked(chooser.choose(model, BATCHES, update))) for update in range(1, 25)]
    found = [sum(masks[:3]), sum(masks[3:6]), sum(masks[6:12]), sum(masks[12:])]
    assert 0 < sum(found) < 24
    run, lengths = RUNS[name], np.diff(ends, prepend=0)
    assert masking_updates(run, 3, ends, lengths).tolist() == found
