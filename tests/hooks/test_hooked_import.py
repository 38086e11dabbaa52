"""Two routes to one number: a model of the library under hooks, and the same one imported."""

import math

import numpy as np
import pytest
import torch
from named_runs import RUNS
from small_hooked import small_hooked, small_text
from small_pretrained import KINDS, LONG, import_small, saved_pretrained

from headcount.base.settings.heads import ImportanceSettings
from headcount.base.settings.train import GatesSettings, TrainSettings
from headcount.data.batches import ParallelText, in_order
from headcount.data.vocabulary import BOS, EOS
from headcount.heads.importance import measure_importance
from headcount.model.loss import summed_loss, token_losses
from headcount.training.learnt_mask import HeadGates
from headcount.training.score import mean_loss
from headcount.training.states import StateStore
from headcount.training.train import Trainer
from headcount_hf.hooks.hooked_seq2seq import HookedSeq2Seq

pytestmark = pytest.mark.slow  # of the library's own classes, a dozen of them


@pytest.fixture(params=KINDS)
def pair(request, tmp_path):
    """Hooked and imported; the text in the ids of each."""
    theirs = saved_pretrained(request.param, tmp_path)
    theirs.set_attn_implementation("eager")
    ours, hooked = import_small(tmp_path), HookedSeq2Seq(theirs)
    sources, targets = (
        [[rows[i] for i in [*ids, EOS]] for ids in side]
        for rows, side in ((ours.src_rows, LONG.src), (ours.tgt_rows, LONG.tgt))
    )
    return hooked, hooked.text(sources, targets, ours.tgt_rows[BOS]), ours.model


def batch_of(text):
    return text.resident(torch.device("cpu")).batch(range(len(text)))


@torch.no_grad()
def test_losses_under_masks_of_sentences(pair):
    hooked, text, ours = pair
    assert hooked.grid == ours.grid
    rows = torch.rand(3, ours.grid.size, generator=torch.Generator().manual_seed(2))
    for multiplier in (None, rows[0].round(), rows):
        found = token_losses(hooked, batch_of(text), multiplier)
        expected = token_losses(ours, batch_of(LONG), multiplier)
        torch.testing.assert_close(found, expected, atol=2e-5, rtol=0)


@pytest.mark.parametrize("unit", ["sentence", "token", "position", "batch", "none"])
def test_importance_in_every_unit(pair, unit):
    hooked, text, ours = pair
    settings = ImportanceSettings(abs=unit, batch_tokens=20)
    found = measure_importance(hooked, text, settings)
    expected = measure_importance(ours, LONG, settings)
    largest = np.abs(expected).max()
    assert largest > 0.05
    np.testing.assert_allclose(found, expected, atol=1e-5 * largest, rtol=0)


SETTINGS = GatesSettings(updates=12, warmup_updates=2, peak_lr=1e-3, dev_interval=6, lr=0.3)
TRAIN = TrainSettings(batch_tokens=20)


def make_gates(grid, name="gates-all-l0.5"):
    run = RUNS[name]
    return HeadGates(run, grid, SETTINGS, SETTINGS.fine_tuning(TRAIN), 2)


def test_closed_heads_lower_what_is_expected_open(tmp_path):
    """A price of half a nat a token: 12 updates close heads of T5, and their mask scores dev."""
    model = small_hooked("t5")
    text, before = small_text(model), {n: w.clone() for n, w in model.named_parameters()}
    gates = make_gates(model.grid)
    start = gates.p_open().sum().item()
    states = StateStore(tmp_path, {}, 1e9)
    trainer = Trainer(model, text, text, SETTINGS.fine_tuning(TRAIN), 2, states, gates)
    trainer.fit()
    end, kept = gates.p_open().sum().item(), gates.test_time()
    assert end < start - 1 and 0 < (kept == 0).sum() < model.grid.size
    assert any(not torch.equal(weight, before[n]) for n, weight in model.named_parameters())
    curve = [row["dev_loss"] for row in trainer.progress.curve]
    assert len(curve) == 2 and all(map(math.isfinite, curve))
    assert curve[-1] == pytest.approx(mean_loss(trainer.averaged, text, 80, kept), rel=1e-6)
    tokens = sum(len(ids) for ids in text.tgt)  # ends are in the ids already
    batch = text.resident(torch.device("cpu")).batch(range(len(text)))
    with torch.no_grad():
        summed = summed_loss(trainer.averaged, batch, kept).item()
    assert curve[-1] == pytest.approx(summed / tokens, rel=1e-5)


def test_gates_learn_the_same_on_the_imported_model(tmp_path):
    """Two routes, weights frozen: five updates of log α under hooks, and in our Transformer."""
    theirs = saved_pretrained("marian", tmp_path)
    ours = import_small(tmp_path)
    plain = ParallelText([[7, 9, 4, 31], [12, 5], [44, 80, 81]], [[9, 8], [10, 40, 11, 12], [21]])
    hooked = HookedSeq2Seq(theirs)
    sources = [[ours.src_rows[i] for i in [*ids, EOS]] for ids in plain.src]
    targets = [[ours.tgt_rows[i] for i in [*ids, EOS]] for ids in plain.tgt]
    text = hooked.text(sources, targets, ours.tgt_rows[BOS])
    found = []
    for model, pairs in ((hooked, text), (ours.model, plain)):
        gates = make_gates(model.grid, "gates-all-l0.01")
        first = gates.learnt.detach().clone()
        for update in range(1, 6):
            batches = list(in_order(pairs, 10))
            multiplier = gates.choose(model, batches, update).multiplier
            for batch in batches:
                (summed_loss(model, batch, multiplier) / 10).backward()
            gates.learn(multiplier.grad)
        assert (gates.learnt - first).abs().max() > 0.5
        found.append(gates.learnt.detach())
    torch.testing.assert_close(found[0], found[1], atol=1e-3, rtol=0)
