"""Multipliers of units that a training learns: Hard Concrete gates, and subsets of K units.

Each unit has one learnt number, around which every update draws a multiplier.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from headcount.base.addresses import HeadGrid
from headcount.base.hard_concrete import HardConcrete
from headcount.base.random_streams import Stream
from headcount.base.ranking import rank_heads
from headcount.base.settings.runs import PrunedSettings
from headcount.base.settings.train import GatesSettings, SubsetSettings, TrainSettings
from headcount.data.batches import Batch
from headcount.model.transformer import Transformer
from headcount.training.headmask import Choice, HeadMask
from headcount.training.optimiser import ADAM, learning_rate
from headcount.training.states import Weights

SMALLEST = 1e-6  # u stays this far from 0 and 1, so that its logarithms are finite
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # of Adam


class LearntMask(HeadMask):
    """A multiplier for every unit of a scope. The other units are left as they are.

    `prices`, [gated units], multiply the penalty.

    The noise depends on seed and update alone, so order of the data and dropout are the same as in
    any other run of the seed. The learnt numbers have their own Adam, without weight decay, and are
    no part of the norm to which the gradient of the weights is clipped.
    """

    name: ClassVar[str]  # of the learnt numbers, in states and in heads.csv
    stream: ClassVar[Stream]

    def __init__(
        self, run: PrunedSettings, grid: HeadGrid, settings: Any, train: TrainSettings, seed: int
    ):
        """`settings`: of the gates or subsets. `train`: of the fine-tuning, with its schedule."""
        self.run = run
        self.grid = grid
        self.settings = settings
        self.train = train
        self.seed = seed
        units = list(enumerate(grid.heads()))
        self.gated = [place for place, unit in units if unit.kind in run.kinds]
        self.prices = torch.ones(len(self.gated), dtype=torch.float64)
        self.learnt = torch.from_numpy(self.first()).requires_grad_()
        self.optimiser = torch.optim.Adam([self.learnt], **ADAM)
        self.update = 0  # the newest update that `choose` has served
        self.history = [self.learnt.detach().clone()]  # at the start and at every validation
        self._drawn = torch.empty(0)

    def first(self) -> np.ndarray:
        """Return the learnt numbers [gated heads] before the first update, in fp64."""
        raise NotImplementedError

    def sample(self, uniform: Tensor) -> Tensor:
        """Return multipliers [gated heads] for uniform draws, differentiable by `learnt`."""
        raise NotImplementedError

    def p_open(self) -> Tensor:
        """Return the probability [gated heads] that a multiplier is not 0, differentiable."""
        raise NotImplementedError

    def rate(self) -> float:
        """Return the learning rate of the current update."""
        return self.settings.lr

    def gates_of(self, learnt: np.ndarray) -> np.ndarray:
        """Return the multipliers [gated heads] of test time for learnt numbers."""
        raise NotImplementedError

    def read_off(self, learnt: np.ndarray) -> dict[str, np.ndarray]:
        """Return statistics [gated heads] of learnt numbers by name, with the gates last."""
        return {self.name: learnt, "gate": self.gates_of(learnt)}

    def test_time(self) -> Tensor:
        """Return every head's multiplier once training is over, [heads] of the whole model."""
        return self._with_ungated(torch.from_numpy(self.gates_of(self.learnt.detach().numpy())))

    def at_end(self) -> dict[str, np.ndarray]:
        """Return statistics of all heads for heads.csv. A head stays if its `gate` is not 0."""
        whole = {}
        for name, values in self.read_off(self.learnt.detach().numpy()).items():
            whole[name] = np.full(self.grid.size, np.nan)  # for heads without a gate
            whole[name][self.gated] = values
        return whole | {"gate": self.test_time().numpy()}

    def statistics(self) -> list[list[list[float]]]:
        """Return the statistics of each gated head, at the start and at every validation."""
        tables = [self.read_off(learnt.numpy()) for learnt in self.history]
        return [np.column_stack([*table.values()]).tolist() for table in tables]

    def choose(self, model: Transformer, batches: Sequence[Batch], update: int) -> Choice:
        """Draw every multiplier. Its gradient is wanted."""
        self.update = update
        self._drawn = self.sample(self._uniform(update, SMALLEST, 1 - SMALLEST))
        return Choice(self._with_ungated(self._drawn.detach()).requires_grad_())

    def learn(self, slopes: Tensor) -> None:
        """Make one step of Adam on the loss plus λ times the expected price of open units."""
        loss = (self._drawn * slopes[self.gated].to(self._drawn.dtype)).sum()
        if self.run.lambda_:
            loss = loss + self.run.lambda_ * (self.prices * self.p_open()).sum()
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.param_groups[0]["lr"] = self.rate()
        self.optimiser.step()

    def at_validation(self) -> Tensor:
        """Return the multipliers of test time, and record the learnt numbers."""
        self.history.append(self.learnt.detach().clone())
        return self.test_time()

    def state(self) -> Weights:
        """Return the learnt numbers, their history, and Adam's moments."""
        moments = {name: self.optimiser.state[self.learnt][name] for name in MOMENTS}
        return {self.name: self.learnt.detach(), "history": torch.stack(self.history), **moments}

    def restore(self, state: Weights) -> None:
        self.history = list(state["history"])
        with torch.no_grad():
            self.learnt.copy_(state[self.name])
        self.optimiser.state[self.learnt] = {name: state[name] for name in MOMENTS}

    def _with_ungated(self, multipliers: Tensor) -> Tensor:
        """Return multipliers of the gated heads as multipliers of all heads, 1 for the others."""
        whole = torch.ones(self.grid.size)
        whole[self.gated] = multipliers.float()
        return whole

    def _uniform(self, update: int, low: float, high: float) -> Tensor:
        """Return draws [gated heads] of one update. Update 0 is the start."""
        generator = self.stream.generator(self.seed, update)
        return torch.from_numpy(generator.uniform(low, high, len(self.gated)))


class HeadGates(LearntMask):
    """One Hard Concrete gate for every unit of a scope, whose log α is learnt.

    The objective is the loss per target token plus λ · (expected sum of the prices of open units),
    so λ is in nats per target token and head. Source: Voita et al. 2019, section 6.1.
    """

    name = "log_alpha"
    stream = Stream.GATES
    settings: GatesSettings

    @property
    def family(self) -> HardConcrete:
        """The distribution of the gates."""
        return HardConcrete(self.settings.temperature)

    def first(self) -> np.ndarray:
        """Return log α [gated heads] before the first update."""
        if self.settings.init != "glorot":
            return np.full(len(self.gated), self.settings.init)
        heads = self.grid.heads()
        counts = [self.grid.counts[heads[i].kind][heads[i].layer] for i in self.gated]
        limits = np.sqrt(6 / (2 * np.array(counts, dtype=float)))
        return self._uniform(0, -1, 1).numpy() * limits

    def sample(self, uniform: Tensor) -> Tensor:
        noise = uniform.log() - (-uniform).log1p()
        concrete = torch.sigmoid((noise + self.learnt) / self.family.temperature)
        stretched = concrete * (self.family.high - self.family.low) + self.family.low
        return stretched.clamp(0, 1)

    def p_open(self) -> Tensor:
        return torch.sigmoid(self.learnt - self.family.zero_shift)

    def rate(self) -> float:
        """Return the rate of the settings, or in proportion to the rate of the weights."""
        if self.settings.lr_schedule == "constant":
            return self.settings.lr
        return self.settings.lr * learning_rate(self.train, self.update) / self.train.peak_lr

    def gates_of(self, learnt: np.ndarray) -> np.ndarray:
        return self.family.at_test(learnt)

    def read_off(self, learnt: np.ndarray) -> dict[str, np.ndarray]:
        """Return log α [gated heads] with the probabilities and the gates of test time."""
        chances = {"p_zero": self.family.p_zero(learnt), "p_one": self.family.p_one(learnt)}
        return {self.name: learnt, **chances, "gate": self.gates_of(learnt)}


TEMPERATURE_END = 1e-8
COOLING = 0.25  # share of the updates in which the temperature falls


class HeadSubset(LearntMask):
    """Exactly K heads of a scope: w ranks them, and each update draws K by w with Gumbel noise.

    A draw is relaxed: multipliers from 0 to hardly above 1, whose sum is K, which tend to K ones as
    the temperature falls. At test time the K largest w stay, equal ones in flat order. Source: Li,
    Cotterell and Sachan 2021, sections 3 and 4 (differentiable subset pruning).
    """

    name = "w"
    stream = Stream.SUBSET
    settings: SubsetSettings

    def first(self) -> np.ndarray:
        """Return w [heads of the scope] at the start: Glorot-uniform, as one row of weights."""
        limit = math.sqrt(6 / (1 + len(self.gated)))
        return self._uniform(0, -limit, limit).numpy()

    def temperature(self) -> float:
        """Return τ of the current update: τ₀ (τ₁/τ₀)^(s/S) for s from 0 to S, then τ₁."""
        start = self.settings.temperature_start
        share = max(0, self.update - 1) / (COOLING * self.train.updates)
        return start * (TEMPERATURE_END / start) ** min(share, 1.0)

    def sample(self, uniform: Tensor) -> Tensor:
        """Return multipliers [heads of the scope] for uniform draws. Their sum is K.

        Σ_j p_j over j = 1 … K, with p_j = softmax(r_j / τ), r_1 = w − ln(−ln u) and
        r_(j+1) = r_j + ln(1 − p_j): K draws without repetition, one after another.
        """
        scores = self.learnt - (-uniform.log()).log()
        total = torch.zeros_like(scores)
        least = torch.finfo(scores.dtype).tiny  # so that the logarithm of the rest is finite
        for _ in range(self.run.heads):
            chances = torch.softmax(scores / self.temperature(), 0)
            total = total + chances
            scores = scores + (1 - chances).clamp_min(least).log()
        return total

    def gates_of(self, learnt: np.ndarray) -> np.ndarray:
        """Return 1 for the K heads that stay, 0 for the others, [heads of the scope]."""
        gates = np.zeros(len(self.gated))
        gates[rank_heads(learnt)[: self.run.heads]] = 1
        return gates
