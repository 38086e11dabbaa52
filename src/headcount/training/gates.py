"""Hard Concrete gates on heads: drawn anew for every update, learnt, and read off at the end.

Source: Voita et al. 2019, section 6.1. The objective is the loss per target token plus
λ · (expected number of open heads), so that λ is the price of one head in nats per target token.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from headcount.base.addresses import HeadGrid
from headcount.base.hard_concrete import HardConcrete
from headcount.base.random_streams import Stream
from headcount.base.settings.runs import PrunedSettings
from headcount.base.settings.train import GatesSettings, TrainSettings
from headcount.data.batches import Batch
from headcount.model.transformer import Transformer
from headcount.training.headmask import Choice, HeadMask
from headcount.training.processes import add_up
from headcount.training.schedule import learning_rate
from headcount.training.states import Weights

_SMALLEST = 1e-6  # u stays this far from 0 and 1, so that its logarithms are finite


class HeadGates(HeadMask):
    """One gate for every head of a scope; the other heads are left as they are.

    The noise depends on seed and update alone, so order of the data and dropout are those of any
    other run of the seed. log α has an Adam of its own, without weight decay, and takes no part in
    the norm to which the gradient of the weights is cut.
    """

    def __init__(
        self,
        run: PrunedSettings,
        grid: HeadGrid,
        settings: GatesSettings,
        train: TrainSettings,
        seed: int,
    ):
        """`train`: the settings of the fine-tuning, whose schedule and Adam's decays are shared."""
        self.grid = grid
        self.settings = settings
        self.train = train
        self.seed = seed
        stretch = settings.stretch_low, settings.stretch_high
        self.family = HardConcrete(settings.temperature, *stretch)
        heads = grid.heads()
        self.gated = [i for i, head in enumerate(heads) if head.kind in run.kinds]
        modules = {(heads[i].kind, heads[i].layer) for i in self.gated}
        mean = settings.lambda_reduction == "mean_over_modules"
        self.lambda_ = run.lambda_ / max(len(modules), 1) if mean else run.lambda_
        self.log_alpha = torch.from_numpy(self._first()).requires_grad_()
        self.optimiser = torch.optim.Adam(
            [self.log_alpha], betas=(train.beta1, train.beta2), eps=train.epsilon
        )
        self.update = 0  # the newest one that `choose` has served
        self.history: list[Tensor] = [self.log_alpha.detach().clone()]
        self._drawn = self._used = torch.empty(0)

    def choose(self, model: Transformer, batches: Sequence[Batch], update: int) -> Choice:
        """A draw of every gate; its gradient gathers over the batches of the update."""
        self.update = update
        self._drawn = self.sample(self._uniform(update, _SMALLEST, 1 - _SMALLEST))
        self._used = torch.ones(self.grid.size)
        self._used[self.gated] = self._drawn.detach().float()
        return Choice(self._used.requires_grad_())

    def learn(self) -> None:
        """One step of Adam on log α, by the gradients of the loss that the draws gathered."""
        add_up([self._used.grad])  # over the batches of all processes
        gradient = self._used.grad[self.gated].to(self._drawn.dtype)
        objective = (self._drawn * gradient).sum()
        warmup = self.settings.lambda_warmup_updates
        if weight := self.lambda_ * (min(1.0, self.update / warmup) if warmup else 1.0):
            objective = objective + weight * self.p_open().sum()
        self.optimiser.zero_grad(set_to_none=True)
        objective.backward()
        rate = self.settings.lr
        if self.settings.lr_schedule != "constant":
            rate = rate * learning_rate(self.train, self.update) / self.train.peak_lr
        self.optimiser.param_groups[0]["lr"] = rate
        self.optimiser.step()

    def at_validation(self) -> Tensor:
        """The gates of test time, [heads] of the whole model; log α is put on record."""
        self.history.append(self.log_alpha.detach().clone())
        return self.test_time()

    def test_time(self) -> Tensor:
        """Every head's gate once training is over, [heads] of the whole model."""
        gates = torch.ones(self.grid.size)
        found = self.family.at_test(self.log_alpha.detach().numpy(), self.settings.eval)
        gates[self.gated] = torch.from_numpy(found).float()
        return gates

    def read_off(self, log_alpha: np.ndarray) -> dict[str, np.ndarray]:
        """log α [gated heads] with the probabilities and the gates of test time that follow."""
        return {
            "log_alpha": log_alpha,
            "p_zero": self.family.p_zero(log_alpha),
            "p_one": self.family.p_one(log_alpha),
            "gate": self.family.at_test(log_alpha, self.settings.eval),
        }

    def sample(self, uniform: Tensor) -> Tensor:
        """Gates [gated heads] for uniform draws, differentiable by log α."""
        noise = uniform.log() - (-uniform).log1p()
        concrete = torch.sigmoid((noise + self.log_alpha) / self.family.temperature)
        stretched = concrete * (self.family.high - self.family.low) + self.family.low
        return stretched.clamp(0, 1)

    def p_open(self) -> Tensor:
        """Probability [gated heads] that a gate is not 0, differentiable by log α."""
        return torch.sigmoid(self.log_alpha - self.family.zero_shift)

    def state(self) -> Weights:
        """log α, its record, and Adam's moments."""
        moments = self.optimiser.state[self.log_alpha]
        learnt = {"log_alpha": self.log_alpha.detach(), "history": torch.stack(self.history)}
        return {**learnt, **{name: moments[name] for name in ("step", "exp_avg", "exp_avg_sq")}}

    def restore(self, state: Weights) -> None:
        with torch.no_grad():
            self.log_alpha.copy_(state["log_alpha"])
        self.history = list(state["history"])
        moments = {name: state[name] for name in ("step", "exp_avg", "exp_avg_sq")}
        self.optimiser.state[self.log_alpha] = moments

    def _first(self) -> np.ndarray:
        """log α [gated heads] before the first update."""
        if self.settings.init != "glorot":
            return np.full(len(self.gated), self.settings.init)
        heads = self.grid.heads()
        counts = [self.grid.counts[heads[i].kind][heads[i].layer] for i in self.gated]
        limits = np.sqrt(6 / (2 * np.array(counts, dtype=float)))
        return self._uniform(0, -1, 1).numpy() * limits

    def _uniform(self, update: int, low: float, high: float) -> Tensor:
        """Draws [gated heads] of one update; update 0 is the start."""
        generator = Stream.GATES.generator(self.seed, update)
        return torch.from_numpy(generator.uniform(low, high, len(self.gated)))
