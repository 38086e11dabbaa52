"""A saved state holds all that the rest of a run depends on: every average, dropout, counters."""

import pytest
import torch
from head_masks import Stopping, make_mask
from small_models import TEXT, make_settings

from headcount.base.files import write_text
from headcount.base.settings.train import TrainSettings
from headcount.base.settings.training_runs import BASELINE
from headcount.data.batches import ParallelText
from headcount.model.transformer import Transformer
from headcount.store.model_folder import load_weights
from headcount.training.states import State, StateStore
from headcount.training.train import Trainer
from headcount.training.training_run import ModelRun

# A dev set that training makes worse: its targets are a word that no training target has.
UNLIKE = ParallelText([[7, 4], [6]], [[3, 3, 3, 3, 3], [3, 3]])


def facts_of(trainer):
    """Every number of the run but the times."""
    rows = [
        {key: row[key] for key in row if key not in ("tokens_per_s", "seconds")}
        for row in trainer.progress.curve
    ]
    progress = trainer.progress
    since = progress.masked_since, progress.slopes_since
    return rows, progress.epoch, progress.position, progress.masks, progress.slopes, since


# Every average with every pattern of stops: before the first validation, again and again, and
# after the last update; every kind of run.
@pytest.mark.parametrize(
    ("average", "run", "stops"),
    [
        ("none", "random-4-rest1", [3, 4, 6]),
        ("ema", "baseline", [1]),
        ("ema", "impt-3-ema0.9", [2, 7]),
        ("none", "impt-3-rest1", [3, 4, 6]),
        ("ema", "impt-3-token-held4", [1]),
        ("last", "impt-3-p0.7-signed", [3, 4, 6]),
        ("last", "baseline", [2, 7]),
        ("ema", "gates-all-l0.5", [3, 4, 6]),
        ("last", "gates-enc_self-l0.1", [1]),
        ("none", "subset-all-k3", [2, 7]),
        ("ema", "drophead-0.4", [3, 4, 6]),
        ("last", "random-1-rest1-rescaled-layer", [2, 7]),
    ],
)
@pytest.mark.slow
def test_f30_a_run_taken_up_again_ends_in_the_same_bits(tmp_path, average, run, stops):
    settings = TrainSettings(
        updates=7, warmup_updates=1, peak_lr=0.2, batch_tokens=14, accumulate=3,
        dev_interval=2, average=average,
    )  # fmt: skip

    def start(name, stop):
        torch.manual_seed(4)
        shape = make_settings(encoder_layers=1, decoder_layers=1, dropout=0.2)
        model = Transformer(shape, 9, 11, False)
        states = Stopping(tmp_path / name, {"run": 1}, 0)
        states.stop = stop
        mask = make_mask(run, model.grid, settings, 3)
        return Trainer(model, TEXT, UNLIKE, settings, 3, states, mask)

    whole = start("whole", 0)
    whole.fit()
    assert whole.progress.best()["step"] == 2  # so that the best weights go through a state, too
    for stop in stops:
        with pytest.raises(SystemExit):
            start("parts", stop).fit()
    parts = start("parts", 0)
    parts.fit()
    assert facts_of(parts) == facts_of(whole)
    assert len(whole.progress.slopes[0]) == 9 * run.startswith("impt")
    for chosen in ("chosen", "last"):
        one, other = getattr(parts, chosen)(), getattr(whole, chosen)()
        assert all(torch.equal(one[name], other[name]) for name in other)
    expected = whole.snapshot().tensors
    found = parts.snapshot().tensors
    assert found.keys() == expected.keys()
    assert [name for name in found if not torch.equal(found[name], expected[name])] == []


def test_a_damaged_state_of_another_run_stops_none(tmp_path):
    other, own = (StateStore(tmp_path, {"seed": seed}, 30) for seed in (9, 1))
    other.save(5, State({}, {}))
    assert "is the state of another run and is not loaded; seed:" in own.refused()
    (other.saved()[0] / "state.json").write_text("{")
    assert own.load() is None
    assert f"{other.saved()[0]} is the state of another run and is not loaded; " in own.refused()


def test_by_hand_a_run_removes_its_own_states_and_nothing_else(tmp_path):
    root, out = tmp_path / "state", tmp_path / "state" / "out"
    other = StateStore(root, {"seed": 9}, 30)
    other.save(5, State({}, {}))
    origin = dict.fromkeys(("settings", "seed", "code", "inputs", "versions"), 1)
    run = ModelRun(TrainSettings(device="cpu"), 1, origin, root, 30, BASELINE, None)
    with run.unfinished(out) as (states, written):
        states.save(1, State({}, {}))
        write_text(written / "x", "1")
    assert (out / "x").read_text() == "1"
    assert [path.name for path in other.saved()] == ["update-000000005"]
    assert not states.folder.exists()


def test_checkpoints_have_frozen_weights_too(tmp_path):
    model = Transformer(make_settings(output_bias=True, position_table=9), 9, 11, False)
    settings = TrainSettings(updates=2, warmup_updates=1, batch_tokens=30, keep_updates=[1])
    trainer = Trainer(model, TEXT, UNLIKE, settings, 3, StateStore(tmp_path, {"run": 1}, 30))
    trainer.fit()
    weights = load_weights(trainer.states.checkpoint(1))
    assert not model.output_bias.requires_grad and weights.keys() == {*trainer.last()}
