"""Gates in training: draws, gradients by differences, λ, scopes, rates, exact resume."""

import math

import numpy as np
import pytest
import torch
from named_runs import RUNS
from small_models import TEXT, UNEVEN, make_model, make_settings

from headcount.base.settings.train import GatesSettings, TrainSettings
from headcount.data.batches import ParallelText
from headcount.model.loss import summed_loss
from headcount.training.learnt_mask import HeadGates
from headcount.training.optimiser import ADAM
from headcount.training.pruning_run import GATE_COLUMNS, freeze_outside
from headcount.training.states import StateStore
from headcount.training.train import Trainer
from headcount.training.training_run import head_rows

GRID = make_settings(heads=UNEVEN).grid
HEADS = 17  # of UNEVEN: encoder 3 and 2, decoder 1, 3 and 2, encoder-decoder 2, 3 and 1
DEV = ParallelText([[5, 8], [6, 6, 7]], [[10], [4, 9, 9, 5]])
SMALL = {"updates": 7, "warmup_updates": 2, "peak_lr": 0.02, "dev_interval": 3, "lr": 0.3}
TRAIN = TrainSettings(batch_tokens=14)


def make_gates(name="gates-all-l0.1", seed=2, train=TRAIN, **changes):
    settings = GatesSettings(**{**SMALL, **changes})
    run = RUNS[name]
    return HeadGates(run, GRID, settings, settings.fine_tuning(train), seed)


@pytest.fixture
def make(tmp_path):
    """Makes a trainer with gates on a small model with dropout; two batches make an epoch."""

    def trainer(name, train=TRAIN, states=None, joint=False, exact=False, **changes):
        model = make_model(heads=UNEVEN, dropout=0 if exact else 0.2, joint=joint, src_size=11)
        model = model.double() if exact else model
        gates = make_gates(name, train=train, **changes)
        freeze_outside(model, RUNS[name])
        states = states or StateStore(tmp_path, {"run": name}, 1e9)
        tuning = gates.settings.fine_tuning(train)
        return Trainer(model, TEXT, DEV, tuning, 2, states, gates)

    return trainer


def choose(gates, update):
    return gates.choose(None, [], update).multiplier


def test_draws_of_training_have_the_closed_forms_masses():
    gates = make_gates(init=-0.4, temperature=0.7)
    updates = 500
    drawn = torch.stack([choose(gates, update) for update in range(1, updates + 1)]).detach()
    # Shift 0.7 · ln 11 = 1.67853: sigmoid(−1.67853 + 0.4) and sigmoid(−0.4 − 1.67853).
    for value, p in ((0, 0.21781), (1, 0.11122)):
        shares = (drawn == value).double().mean(0)
        assert (shares - p).abs().max() < 4.5 * math.sqrt(p * (1 - p) / updates)
    # One draw says nothing of the next head's or the next update's.
    open_heads = (drawn > 0).double()
    for left, right in ((drawn[:, :-1], drawn[:, 1:]), (drawn[:-1], drawn[1:])):
        both = ((left > 0) & (right > 0)).double().mean(0)
        p = 0.78219**2
        assert (both - p).abs().max() < 4.5 * math.sqrt(p * (1 - p) / updates)
    assert open_heads.mean() == pytest.approx(0.78219, abs=0.02)


def test_a_draw_and_its_gradient_at_fixed_noise():
    gates = make_gates(temperature=0.6)
    uniform = torch.linspace(0.02, 0.98, HEADS, dtype=torch.float64)
    with torch.no_grad():
        gates.learnt.copy_(torch.linspace(-1.5, 1.8, HEADS).flip(0).double())
    # Head 1: u = 0.02, log α = 1.8: sigmoid((−3.89182 + 1.8) / 0.6) = 0.029693; × 1.2 − 0.1 < 0.
    # Head 9: u = 1/2, log α = 0.15: sigmoid(0.25) = 0.562177; × 1.2 − 0.1 = 0.574612.
    drawn = gates.sample(uniform)
    assert drawn[0] == 0 and drawn[8].item() == pytest.approx(0.574612, abs=1e-6)
    drawn.sum().backward()
    step = 1e-6
    with torch.no_grad():
        gates.learnt += step
        up = gates.sample(uniform)
        gates.learnt -= 2 * step
        slope = (up - gates.sample(uniform)) / (2 * step)
    torch.testing.assert_close(gates.learnt.grad, slope, rtol=1e-6, atol=1e-8)
    assert 3 < (slope != 0).sum() < HEADS  # some are cut off, and do not move


def objective(trainer, batches, log_alpha, uniform, lambda_):
    """Loss per target token plus the penalty, dropout off, as a number of log α."""
    gates = trainer.head_mask
    with torch.no_grad():
        gates.learnt.copy_(log_alpha)
        multiplier = torch.ones(HEADS, dtype=torch.float64)
        multiplier[gates.gated] = gates.sample(uniform)
        loss = sum(summed_loss(trainer.model, b, multiplier, 0.1) for b in batches)
        tokens = sum(b.target_tokens for b in batches)
        return float(loss / tokens + lambda_ * gates.p_open().sum())


@pytest.mark.parametrize(
    ("name", "lambda_"),
    [
        ("gates-enc_self-l0.7", 0.7),
        pytest.param("gates-all-l0.8", 0.8, marks=pytest.mark.slow),
        pytest.param("gates-all-l0", 0.0, marks=pytest.mark.slow),
    ],
)
def test_f07_what_gates_learn_is_the_slope_of_the_whole_objective(make, monkeypatch, name, lambda_):
    """Two batches, one draw; λ is per target token, however many tokens there are."""
    # So small a rate leaves the weights as they are; a large ε makes Adam's step show the slope.
    monkeypatch.setitem(ADAM, "eps", 10.0)
    train = TrainSettings(batch_tokens=14, accumulate=2)
    trainer = make(name, train, exact=True, init=0.3, lr=1.0, peak_lr=1e-12)
    gates = trainer.head_mask
    start = gates.learnt.detach().clone()
    trainer._update()
    moved = gates.learnt.detach().clone() - start
    # Adam's first step is −lr · g / (|g| + ε).
    gradient = -10 * moved / (1 - moved.abs())
    uniform = gates._uniform(1, 1e-6, 1 - 1e-6)
    batches = [TEXT.batch(ids) for ids in trainer.plan.epoch(0)]
    assert len(batches) == 2
    slope = torch.zeros_like(start)
    for head in range(len(start)):
        nudge = torch.zeros_like(start)
        nudge[head] = 1e-5
        up = objective(trainer, batches, start + nudge, uniform, lambda_)
        slope[head] = (up - objective(trainer, batches, start - nudge, uniform, lambda_)) / 2e-5
    # The multiplier passes through 32 bits: 1e-7 of gates near 1.
    torch.testing.assert_close(gradient, slope, rtol=1e-4, atol=1e-6)


def weights_after(trainer):
    trainer.fit()
    return {name: weight.detach().clone() for name, weight in trainer.model.named_parameters()}


@pytest.mark.parametrize("joint", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_enc_self_leaves_the_decoder_as_it_was_to_the_last_bit(make, joint):
    before = dict(make_model(heads=UNEVEN, joint=joint, src_size=11).named_parameters())
    trainer = make("gates-enc_self-l0.1", joint=joint)
    after = weights_after(trainer)
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    encoder = {name for name in before if name.startswith("encoder")}
    own = set() if joint else {"own_src_embedding.weight"}
    assert changed == encoder | own
    assert "decoder.0.cross.inputs.weight" in before  # keys and values of the encoder's output
    assert all(trainer.model.get_parameter(name).grad is None for name in before.keys() - changed)
    chosen = trainer.chosen()
    assert all(torch.equal(chosen[name], before[name]) for name in before.keys() - changed)
    assert len(trainer.head_mask.learnt) == 5
    assert choose(trainer.head_mask, 9)[5:].tolist() == [1] * 12


def test_enc_self_trains_the_norm_of_the_encoders_embeddings_too():
    model = make_model(embedding_norm=True)
    freeze_outside(model, RUNS["gates-enc_self-l0.1"])
    norms = {name: w.requires_grad for name, w in model.embedding_norms.named_parameters()}
    assert norms == {"0.weight": True, "0.bias": True, "1.weight": False, "1.bias": False}


def test_gates_are_recorded_at_the_start_and_at_every_validation(make):
    trainer = make("gates-enc_self-l0.5", init=0.0)
    trainer.fit()
    gates = trainer.head_mask
    cells = head_rows(
        [gates.grid.heads()[i] for i in gates.gated], [0, *trainer.steps()], gates.statistics()
    )
    rows = [dict(zip(GATE_COLUMNS, row, strict=True)) for row in cells]
    assert [row["step"] for row in rows] == [0] * 5 + [3] * 5 + [6] * 5 + [7] * 5
    assert [(row["layer"], row["head"]) for row in rows[:5]] == [
        *((0, 0), (0, 1), (0, 2)),
        *((1, 0), (1, 1)),
    ]
    assert {row["kind"] for row in rows} == {"enc_self"}
    # sigmoid(∓0.33 ln 11) = 0.31189 at log α = 0, on either side.
    assert rows[0]["log_alpha"] == 0
    assert (rows[0]["p_zero"], rows[0]["p_one"]) == pytest.approx((0.31189, 0.31189), abs=1e-5)
    last = trainer.head_mask.learnt.tolist()
    assert [row["log_alpha"] for row in rows[-5:]] == last
    assert [row["gate"] for row in rows[-5:]] == [float(value > 0) for value in last]


def test_the_rate_of_gates_is_constant_or_follows_the_weights(make):
    # The first step of Adam is lr · g / (|g| + ε): the rate, where ε is small.
    constant, following = (
        make("gates-all-l1", lr_schedule=way, lr=0.3) for way in ("constant", "weights")
    )
    for trainer, rate in ((constant, 0.3), (following, 0.15)):  # 1 of 2 updates of warm-up
        start = trainer.head_mask.learnt.detach().clone()
        trainer._update()
        moved = (trainer.head_mask.learnt.detach() - start).abs()
        torch.testing.assert_close(moved, torch.full_like(moved, rate), rtol=1e-5, atol=0)


def test_a_price_multiplies_the_penalty_of_a_unit():
    """λ times the price times the slope p (1 − p) of an open gate's probability."""
    grid = make_settings(heads=UNEVEN).unit_grid
    settings = GatesSettings(**SMALL)
    gates = HeadGates(
        RUNS["gates-units-l0.7-flops"], grid, settings, settings.fine_tuning(TRAIN), 2
    )
    gates.prices = torch.linspace(0, 3, grid.size, dtype=torch.float64)
    p = gates.p_open().detach()
    gates.choose(None, [], 1)
    gates.learn(torch.zeros(grid.size))
    torch.testing.assert_close(gates.learnt.grad, 0.7 * gates.prices * p * (1 - p))


def test_glorot_starts_within_its_limits_of_each_layer():
    gates = make_gates(init="glorot")
    # ±√(6 / 2h): h = 3: 1; 2: 1.22474; 1: 1.73205.
    heads = [3] * 3 + [2] * 2 + [1] + [3] * 3 + [2] * 2 + [2] * 2 + [3] * 3 + [1]
    limits = np.sqrt(6 / (2 * np.array(heads)))
    start = np.abs(gates.learnt.detach().numpy())
    assert (start < limits).all() and len(set(start)) == HEADS
    draws = [make_gates(init="glorot", seed=seed).learnt.detach().numpy() for seed in range(200)]
    # Uniform in ±limit: the mean of squares is limit² / 3, its deviation √(4 / 45) limit² a draw.
    squares = np.mean(np.square(draws), axis=0) / limits**2
    assert np.abs(squares - 1 / 3).max() < 4.5 * math.sqrt(4 / 45 / 200)
