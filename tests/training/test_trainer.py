"""The training loop: one update by hand, faults that stop it, what it keeps, what it repeats."""

import math

import numpy as np
import pytest
import torch
from small_models import TEXT, make_settings

from headcount.base.errors import UserError
from headcount.base.settings.train import GatesSettings, TrainSettings
from headcount.data.batches import ParallelText, collate
from headcount.model.loss import summed_loss, token_losses
from headcount.model.transformer import Transformer
from headcount.store.model_folder import load_weights
from headcount.training import train as train_module
from headcount.training.optimiser import ADAM, learning_rate
from headcount.training.states import StateStore
from headcount.training.train import Trainer

# Lengths with EOS: 7, 3 and 6 make two batches at a budget of 14 and one at 21.
DEV = ParallelText([[5, 8], [6, 6, 7]], [[10], [4, 9, 9, 5]])


@pytest.fixture
def make(tmp_path):
    """Makes a trainer of a fresh small model; everything follows the seed."""
    made = []

    def trainer(seed=1, dropout=0.0, double=False, text=TEXT, dev=DEV, **changes):
        torch.manual_seed(seed)
        shape = make_settings(encoder_layers=1, decoder_layers=1, dropout=dropout)
        model = Transformer(shape, 9, 11, False)
        small = {"updates": 4, "warmup_updates": 2, "batch_tokens": 14, "dev_interval": 2}
        settings = TrainSettings(**{**small, "clip_norm": 1e6, **changes})
        made.append(StateStore(tmp_path / str(len(made)), {"run": 1}, 1e9))
        return Trainer(model.double() if double else model, text, dev, settings, seed, made[-1])

    return trainer


def weights_of(trainer):
    return {name: weight.detach().clone() for name, weight in trainer.weights.items()}


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def gradients(model, text, smoothing):
    """Of the loss summed over all pairs and divided by their 12 target tokens."""
    model.zero_grad()
    loss = token_losses(model, collate(text, range(3)), smoothing=smoothing).sum() / 12
    loss.backward()
    return {name: weight.grad.clone() for name, weight in model.named_parameters()}


@pytest.mark.parametrize(
    ("batch_tokens", "accumulate", "clip_norm"),
    [(21, 1, 1e6), (14, 2, 1e6), (21, 1, 0), (21, 1, 0.02)],
)
def test_first_update_by_hand(make, monkeypatch, batch_tokens, accumulate, clip_norm):
    """Adam's first step is lr · g / (|g| + ε). A clip_norm of 0 clips no gradient."""
    monkeypatch.setitem(ADAM, "eps", 0.1)  # so large that the size of g matters
    trainer = make(
        double=True, updates=1, warmup_updates=1, peak_lr=0.5,
        batch_tokens=batch_tokens, accumulate=accumulate, clip_norm=clip_norm,
    )  # fmt: skip
    assert len(trainer.plan.epoch(0)) == accumulate
    before, gradient = weights_of(trainer), gradients(trainer.model, TEXT, 0.1)
    norm = math.sqrt(sum(float(g.square().sum()) for g in gradient.values()))
    assert norm > 0.04
    scale = min(1, (clip_norm or math.inf) / norm)
    trainer.fit()
    for name, weight in trainer.weights.items():
        clipped = gradient[name] * scale
        expected = before[name] - 0.5 * clipped / (clipped.abs() + 0.1)
        torch.testing.assert_close(weight.detach(), expected, atol=1e-6, rtol=0, msg=name)


def test_curve_by_hand(make):
    trainer = make(updates=5, peak_lr=0.01, dropout=0.0, average="none", dev_interval=2)
    trainer.fit()
    curve = trainer.progress.curve
    assert [row["step"] for row in curve] == [2, 4, 5]  # every second update and the last
    # Warm-up to 0.01 at update 2, then √(2 / update).
    rates = [0.01, 0.01 * math.sqrt(2 / 4), 0.01 * math.sqrt(2 / 5)]
    assert [row["lr"] for row in curve] == pytest.approx(rates)
    # Two batches an epoch; the row counts finished epochs up to the batch in use.
    assert [row["epoch"] for row in curve] == [0, 1, 2]
    with torch.no_grad():
        losses = [token_losses(trainer.model.eval(), collate(DEV, [i])).sum() for i in range(2)]
    # 2 + 5 target tokens with EOS, no smoothing.
    assert curve[-1]["dev_loss"] == pytest.approx(float(sum(losses)) / 7, abs=1e-5)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_training_loss_is_the_mean_since_the_last_validation(make, accumulate):
    # So small a rate changes nothing; an update sees one of two batches or both, 12 tokens in all.
    trainer = make(updates=4, peak_lr=1e-12, dev_interval=4, accumulate=accumulate)
    losses = token_losses(trainer.model, collate(TEXT, range(3)), smoothing=0.1)
    expected = losses.sum().item() / 12
    trainer.fit()
    assert trainer.progress.curve[0]["train_loss"] == pytest.approx(expected, abs=1e-5)
    assert trainer.progress.curve[0]["tokens_per_s"] > 0


# Dev losses at updates 2, 4, 6, …: the lowest at 4, as low again at 8, which is not below it.
PLANTED = [3.0, 2.0, 2.5, 2.0, 2.2, 1.0, 1.5]


@pytest.mark.parametrize(
    ("patience", "end", "best"), [(0, 14, 12), (1, 6, 4), (2, 8, 4), (3, 10, 4), (4, 14, 12)]
)
def test_patience_ends_training_when_dev_loss_has_not_fallen(
    make, monkeypatch, patience, end, best
):
    losses = iter(PLANTED)
    monkeypatch.setattr(train_module, "mean_loss", lambda *_: next(losses))
    trainer = make(updates=14, patience=patience)
    trainer.fit()
    assert (trainer.progress.update, trainer.chosen_row()["step"]) == (end, best)
    assert [row["step"] for row in trainer.progress.curve] == list(range(2, end + 1, 2))
    again = make(updates=14, patience=patience)
    again.states = trainer.states
    again.fit()  # takes up the state of the end and makes no update more
    assert again.progress == trainer.progress


def test_best_is_the_lowest_dev_loss(make):
    # Three lines learnt by heart help at first, then not.
    short = {"updates": 9, "warmup_updates": 1, "average": "none", "dev_interval": 3}
    trainer = make(peak_lr=0.02, **short)
    trainer.fit()
    losses = {row["step"]: row["dev_loss"] for row in trainer.progress.curve}
    best = min(losses, key=losses.__getitem__)
    assert best < 9
    assert trainer.progress.best()["step"] == best

    def dev_loss(weights):
        trainer.model.load_state_dict(weights)
        return token_losses(trainer.model.eval(), collate(DEV, [0, 1])).sum().item() / 7

    last = {name: weight.detach().clone() for name, weight in trainer.last().items()}
    assert dev_loss(trainer.chosen()) == pytest.approx(losses[best], abs=1e-5)
    assert dev_loss(last) == pytest.approx(losses[9], abs=1e-5)
    lasting = make(peak_lr=0.02, select="last", **short)
    lasting.fit()
    assert same(lasting.chosen(), last)


def test_every_epoch_shows_every_pair_once(make, monkeypatch):
    seen = []
    lengths = np.random.default_rng(1).integers(0, 7, (10, 2)).tolist()
    text = ParallelText([[4] * src for src, _ in lengths], [[5] * tgt for _, tgt in lengths])
    trainer = make(text=text, updates=5, accumulate=3)
    resident = trainer.resident.batch
    monkeypatch.setattr(trainer.resident, "batch", lambda ids: seen.append(ids) or resident(ids))
    sizes = [len(trainer.plan.epoch(number)) for number in range(4)]
    assert sizes[0] + sizes[1] + 1 < 15  # into the third epoch at least
    trainer.fit()
    assert len(seen) == 5 * 3
    start = 0
    for number, size in enumerate(sizes):
        epoch = [i for batch in seen[start : start + size] for i in batch]
        if len(seen) >= start + size:
            assert sorted(epoch) == list(range(10))
            finished = number
        start += size
    assert finished >= 1
    assert trainer.progress.epoch * 10 <= sum(map(len, seen))


def test_f37_gradient_that_is_no_number_stops_before_any_weight_changes(make, monkeypatch):
    trainer, normal = make(accumulate=2), summed_loss

    def steep(model, batch, *others):
        if trainer.progress.update < 2:
            return normal(model, batch, *others)
        zero = model.tgt_embedding.weight.sum() * 0
        return normal(model, batch, *others) + zero.sqrt()  # slope 1 / √0 times 0

    monkeypatch.setattr(train_module, "summed_loss", steep)
    seen = []
    trainer.average.after_update = lambda weights, update: seen.append(weights_of(trainer))
    with pytest.raises(UserError, match="update 3: the gradient norm is nan"):
        trainer.fit()
    assert len(seen) == 2 and same(weights_of(trainer), seen[-1])


def test_f37_dev_loss_that_is_no_number_stops_training(make):
    trainer = make(dev=ParallelText([[8]], [[4]]), text=ParallelText([[4]], [[5]]), average="none")
    with torch.no_grad():
        trainer.model.own_src_embedding.weight[8] = math.inf  # only the dev set has this word
    with pytest.raises(UserError, match="update 2: the dev loss is nan, expected a finite number"):
        trainer.fit()


def test_bf16_is_near_fp32_and_keeps_fp32_weights(make):
    runs = [make(precision=precision, peak_lr=0.01) for precision in ("fp32", "bf16")]
    for run in runs:
        run.fit()
    full, half = (run.progress.curve[-1]["dev_loss"] for run in runs)
    assert full != half and half == pytest.approx(full, rel=0.02)  # 8 bits: 0.4 % a product
    assert all(weight.dtype == torch.float32 for weight in runs[1].weights.values())


def test_an_empty_dev_set_is_refused_at_once(make):
    with pytest.raises(UserError, match="the dev set has no sentence pair"):
        make(dev=ParallelText([], []))


def test_a_dev_pair_longer_than_any_batch_is_scored(make):
    trainer = make(dev=ParallelText([[4] * 200], [[5] * 3]))
    trainer.fit()
    assert math.isfinite(trainer.progress.best()["dev_loss"])


@pytest.mark.parametrize("average", ["none", "ema", "last"])
def test_the_seed_decides_every_bit_and_checkpoints_change_none(make, average):
    """A checkpoint has the weights that were validated after that update."""
    options = {"dropout": 0.2, "average": average}
    plain, saving, other = make(**options), make(keep_updates=[1, 2], **options), make(2, **options)
    shorter = make(updates=2, **options)
    for trainer in (plain, saving, other, shorter):
        trainer.fit()
    assert same(plain.chosen(), saving.chosen()) and same(plain.last(), saving.last())
    ours, others = plain.chosen(), other.chosen()
    assert not any(torch.equal(ours[name], others[name]) for name in ours if "embedding" in name)
    assert same(load_weights(saving.states.checkpoint(2)), shorter.last())


def rate(update, **changes):
    settings = TrainSettings(**{"peak_lr": 0.01, "warmup_updates": 4, "updates": 20, **changes})
    return learning_rate(settings, update)


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "cosine"])
def test_warm_up_is_a_straight_line(schedule):
    found = [rate(update, schedule=schedule) for update in (1, 2, 3, 4)]
    assert found == pytest.approx([0.0025, 0.005, 0.0075, 0.01])
    assert rate(20, schedule=schedule, warmup_updates=20) == pytest.approx(0.01)


def test_inverse_square_root_is_the_formula_of_the_paper():
    # d^-0.5 · min(u^-0.5, u · w^-1.5) with d = 512, w = 4000
    peak = (512 * 4000) ** -0.5
    for update in (1, 1234, 4000, 4001, 25000):
        paper = 512**-0.5 * min(update**-0.5, update * 4000**-1.5)
        found = rate(update, peak_lr=peak, warmup_updates=4000, updates=30000)
        assert found == pytest.approx(paper)


def test_cosine_by_hand():
    # From update 4 to 20; the floor is 2 % of 0.01.
    found = [rate(update, schedule="cosine") for update in (8, 12, 16, 20)]
    root = math.sqrt(0.5)  # cos 45°
    assert found == pytest.approx(
        [
            0.01 * (0.02 + 0.98 * (1 + root) / 2),
            0.01 * 0.51,
            0.01 * (0.02 + 0.98 * (1 - root) / 2),
            0.0002,
        ]
    )


def test_fine_tuning_has_no_patience():
    train = TrainSettings(updates=9, warmup_updates=1, patience=2)
    assert GatesSettings(updates=5, warmup_updates=1).fine_tuning(train).patience == 0
