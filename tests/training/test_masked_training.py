"""Training with masked heads: what reaches the model, what stays the baseline's, what is told."""

import math
import re

import pytest
import torch
from head_masks import make_mask
from named_runs import RUNS
from small_models import TEXT, UNEVEN, make_model, make_settings

from headcount.base.errors import UserError
from headcount.base.settings.train import TrainSettings
from headcount.data.batches import ParallelText, collate
from headcount.heads.importance import batch_importance, sentence_slopes
from headcount.model.loss import summed_loss
from headcount.model.transformer import Transformer
from headcount.training import train as train_module
from headcount.training.headmask import make_head_mask
from headcount.training.states import StateStore
from headcount.training.train import Trainer
from headcount.training.training_run import MASK_COLUMNS, SLOPE_COLUMNS, head_rows

pytestmark = pytest.mark.slow  # a step from files to files, or models that are trained

SHAPE = {"encoder_layers": 1, "decoder_layers": 1}
SHAPE["heads"] = {"enc_self": [3], "dec_self": [2], "dec_enc": [4]}
HEADS = 9
DEV = ParallelText([[5, 8], [6, 6, 7]], [[10], [4, 9, 9, 5]])
# Seven updates, the last interval one update long.
SETTINGS = {"updates": 7, "warmup_updates": 2, "peak_lr": 0.02, "dev_interval": 3}


@pytest.fixture
def make(tmp_path):
    """Makes a trainer of a run on a small model with dropout; two batches make an epoch."""

    def trainer(name, dropout=0.2, **changes):
        torch.manual_seed(5)
        model = Transformer(make_settings(dropout=dropout, **SHAPE), 9, 11, False)
        settings = TrainSettings(**{**SETTINGS, "batch_tokens": 14, **changes})
        states = StateStore(tmp_path, {"run": name}, 1e9)
        mask = make_mask(name, model.grid, settings)
        return Trainer(model, TEXT, DEV, settings, 2, states, mask)

    return trainer


@pytest.fixture
def seen(monkeypatch):
    """Ids, multiplier and seed of dropout of every batch that training learns from."""
    seen = []

    def watch(model, batch, multiplier, smoothing):
        seen.append((batch.indices, multiplier, torch.initial_seed()))
        return summed_loss(model, batch, multiplier, smoothing)

    monkeypatch.setattr(train_module, "summed_loss", watch)
    return seen


def state_of(trainer):
    """All tensors of the run's state but those of the head mask."""
    tensors = trainer.snapshot().tensors
    return {name: tensor for name, tensor in tensors.items() if "head_mask" not in name}


def rows_of(trainer, columns, values):
    rows = head_rows(trainer.model.grid.heads(), trainer.steps(), values)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def differing(one, other):
    assert one.keys() == other.keys()
    return {name for name in one if not torch.equal(one[name], other[name])}


def test_f06_masking_no_head_is_the_baseline_to_the_last_bit(make):
    """So the first pass of Impt disturbs neither weights, moments, averages nor dropout."""
    ends = {}
    none = ("random-0", "random-0-rescaled-sentence-v", "drophead-0", "impt-0", "impt-0-ema0.9")
    for run in ("baseline", *none):
        trainer = make(run)  # seeds dropout
        trainer.fit()
        ends[run] = state_of(trainer)
    baseline = ends.pop("baseline")
    assert {run: differing(baseline, end) for run, end in ends.items()} == dict.fromkeys(
        ends, set()
    )


@pytest.mark.parametrize("name", ["random-4", "impt-4", "gates-all-l2"])
def test_masked_runs_share_data_order_and_dropout_with_the_baseline(make, seen, name):
    runs = []
    for run in ("baseline", name):
        trainer = make(run, accumulate=3)
        trainer.fit()
        runs.append((state_of(trainer), [(ids, dropout) for ids, _, dropout in seen]))
        choices = [
            {id(multiplier) for _, multiplier, _ in seen[n : n + 3]} for n in range(0, 21, 3)
        ]
        assert all(len(of_update) == 1 for of_update in choices)
        seen.clear()
    (plain, data), (masked, same) = runs
    assert same == data and len({dropout for _, dropout in data}) == 21
    assert "model/tgt_embedding.weight" in differing(plain, masked)


@pytest.mark.parametrize("name", ["random-9", "impt-9"])
def test_heads_that_are_always_masked_learn_nothing(make, name):
    trainer = make(name)
    before = {name: weight.detach().clone() for name, weight in trainer.weights.items()}
    trainer.fit()
    changed = differing(before, trainer.weights)
    # An attention layer without heads gives the bias of W_O, and the decoder sees no source.
    learning = ("output.bias", "feed_forward", "tgt_embedding", "decoder_norm")
    assert changed == {
        name
        for name in before
        if any(part in name for part in learning) and not name.startswith("encoder")
    }


def test_every_sentence_is_trained_with_its_own_row(make, seen):
    """In the order of the batches. masks.csv has the shares of sentences, averaged over updates."""
    trainer = make("drophead-0.4", accumulate=2, peak_lr=1e-12)
    trainer.fit()
    mask = make_mask("drophead-0.4", trainer.model.grid, trainer.settings)
    masked = []
    for update in range(7):
        batches = [collate(TEXT, ids) for ids, *_ in seen[2 * update :][:2]]
        choice = mask.choose(None, batches, update + 1)
        assert torch.equal(
            choice.multiplier, torch.cat([row for _, row, _ in seen[2 * update :][:2]])
        )
        masked.append(choice.masked)
    rows = rows_of(trainer, MASK_COLUMNS, trainer.progress.masks)
    for at, (start, stop) in enumerate([(0, 3), (3, 6), (6, 7)]):
        expected = torch.tensor(masked[start:stop]).mean(0)
        found = [row["masked"] for row in rows[9 * at : 9 * at + 9]]
        assert found == pytest.approx(expected.tolist())


@pytest.mark.parametrize("name", ["random-4", "impt-4"])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_one_choice_reaches_every_batch_of_an_update(make, seen, name, accumulate):
    trainer = make(name, accumulate=accumulate, peak_lr=1e-12)
    trainer.fit()
    assert len(seen) == 7 * accumulate
    run, grid = RUNS[name], trainer.model.grid
    sampler = make_head_mask(run, grid, trainer.settings, 2)
    for update in range(7):
        of_update = seen[update * accumulate :][:accumulate]
        # So small a rate changes no weight, so the model is still that of the first update.
        batches = [collate(TEXT, ids) for ids, *_ in of_update]
        expected = sampler.choose(trainer.model, batches, update + 1).multiplier
        assert expected.sum() == HEADS - 4
        assert all(torch.equal(multiplier, expected) for _, multiplier, _ in of_update)
    assert len({tuple(multiplier.tolist()) for _, multiplier, _ in seen}) > 1


def test_first_pass_loss_is_that_of_all_heads_without_dropout(make, seen):
    masked = make("impt-4", batch_tokens=21, peak_lr=1e-12)
    masked.fit()
    with torch.no_grad():
        model, batch = masked.model.eval(), collate(TEXT, [0, 1, 2])
        expected = summed_loss(model, batch, smoothing=0.1).sum().item() / 12
        with_masks = summed_loss(model, batch, seen[0][1], smoothing=0.1).sum().item() / 12
    assert [row["first_pass_loss"] for row in masked.progress.curve] == pytest.approx(
        [expected] * 3, abs=1e-5
    )
    assert abs(expected - with_masks) > 1e-3
    for name in ("baseline", "random-4"):
        plain = make(name, batch_tokens=21)
        plain.fit()
        assert [row["first_pass_loss"] for row in plain.progress.curve] == [None] * 3


@pytest.mark.parametrize("name", ["random-4", "impt-4", "impt-4-p0.5"])
def test_frequencies_count_every_masked_head_once_an_update(make, seen, name):
    trainer = make(name)
    trainer.fit()
    rows = rows_of(trainer, MASK_COLUMNS, trainer.progress.masks)
    assert [row["step"] for row in rows] == [3] * HEADS + [6] * HEADS + [7] * HEADS
    addresses = [(row["kind"], row["layer"], row["head"]) for row in rows]
    assert addresses == [tuple(head) for head in trainer.model.grid.heads()] * 3
    for start, stop, of_interval in ((0, 3, rows[:9]), (3, 6, rows[9:18]), (6, 7, rows[18:])):
        used = torch.stack([multiplier for _, multiplier, _ in seen[start:stop]])
        expected = (used == 0).double().mean(0)
        assert [row["masked"] for row in of_interval] == pytest.approx(expected.tolist())
    masking = sum(1 for _, multiplier, _ in seen if (multiplier == 0).any())
    told = sum(row["masked"] * (1 if row["step"] == 7 else 3) for row in rows)
    assert told == pytest.approx(4 * masking)
    assert masking == 7 or (name == "impt-4-p0.5" and 0 < masking < 7)


@pytest.mark.parametrize(
    ("name", "unit"), [("impt-4", "sentence"), ("impt-4-token-held5", "token")]
)
def test_slopes_are_mean_and_deviation_over_the_sentences_of_an_interval(make, seen, name, unit):
    """So small a rate changes no weight, so the model is still that of the first update.

    Intervals of 3, 3 and 1 updates of 2 batches, of one and of two pairs.
    """
    trainer = make(name, accumulate=2, peak_lr=1e-12)
    trainer.fit()
    rows, model = rows_of(trainer, SLOPE_COLUMNS, trainer.progress.slopes), trainer.model
    assert [row["step"] for row in rows] == [3] * HEADS + [6] * HEADS + [7] * HEADS
    addresses = [(row["kind"], row["layer"], row["head"]) for row in rows]
    assert addresses == [tuple(head) for head in model.grid.heads()] * 3
    for start, stop, of_interval in ((0, 6, rows[:9]), (6, 12, rows[9:18]), (12, 14, rows[18:])):
        used = [number for ids, *_ in seen[start:stop] for number in ids]
        alone = [collate(TEXT, [number]) for number in used]
        slopes = torch.cat([sentence_slopes(model, batch, 0.1)[0] for batch in alone]).double()
        sizes = [batch_importance(model, batch, unit, smoothing=0.1).importance for batch in alone]
        expected = {
            "slope_mean": slopes.mean(0),
            "slope_sd": slopes.std(0, correction=0),
            "importance": torch.stack(sizes).mean(0),
        }
        for column, values in expected.items():
            found = [row[column] for row in of_interval]
            assert found == pytest.approx(values.tolist(), rel=1e-4, abs=1e-5), column
    assert len(seen[0][0]) != len(seen[1][0])  # so a mean over batches would be another one
    assert any(row["slope_mean"] < 0 for row in rows) and any(row["slope_mean"] > 0 for row in rows)


def test_f37_a_first_pass_that_is_no_number_stops_before_any_weight_changes(make):
    trainer = make("impt-4", batch_tokens=21)
    with torch.no_grad():
        trainer.model.own_src_embedding.weight[4, 3] = math.inf
    before = {name: weight.detach().clone() for name, weight in trainer.weights.items()}
    told = "update 1: the loss of the first pass is nan, expected a finite number"
    with pytest.raises(UserError, match=told):
        trainer.fit()
    assert differing(before, trainer.weights) == set()


@pytest.mark.parametrize(
    ("name", "average"), [("random-4", "ema"), ("impt-4", "last"), ("gates-all-l0.1", "ema")]
)
def test_f37_nothing_has_changed(tmp_path, monkeypatch, name, average):
    model = make_model(heads=UNEVEN, dropout=0.2)
    settings = TrainSettings(
        updates=6, warmup_updates=2, dev_interval=2, batch_tokens=14, accumulate=2, average=average
    )
    mask = make_mask(name, model.grid, settings)
    trainer = Trainer(model, TEXT, TEXT, settings, 2, StateStore(tmp_path, {}, 1e9), mask)
    trainer._update()
    trainer._update()
    trainer._validate()
    # The importance of a first pass is learnt before the loss of the second one is known.
    kept = {
        key: tensor.clone()
        for key, tensor in trainer.snapshot().tensors.items()
        if not key.startswith("random/") and key != "head_mask/importance"
    }
    batches = []

    def bad_at_last(model, batch, *others):
        batches.append(batch)
        return summed_loss(model, batch, *others) * (math.nan if len(batches) == 2 else 1)

    monkeypatch.setattr(train_module, "summed_loss", bad_at_last)
    pairs = "update 3: the loss is nan, .* look at lines "
    with pytest.raises(UserError, match=pairs) as told:
        trainer._update()
    named = re.search(r"at lines \[(.*?)\]", str(told.value))[1]
    assert [int(pair) - 1 for pair in named.split(", ")] == batches[1].indices != batches[0].indices
    after = trainer.snapshot().tensors
    assert len(kept) > 100 and all(torch.equal(after[key], kept[key]) for key in kept)
    assert trainer.progress.update == 2
