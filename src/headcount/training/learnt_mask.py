"""Multipliers that a training learns: one number a head, and draws around it for every update."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from headcount.base.addresses import HeadGrid
from headcount.base.random_streams import Stream
from headcount.base.settings.runs import PrunedSettings
from headcount.base.settings.train import TrainSettings
from headcount.data.batches import Batch
from headcount.model.transformer import Transformer
from headcount.training.headmask import Choice, HeadMask
from headcount.training.schedule import ADAM
from headcount.training.states import Weights

SMALLEST = 1e-6  # u stays this far from 0 and 1, so that its logarithms are finite


class LearntMask(HeadMask):
    """A multiplier for every head of a scope; the other heads are left as they are.

    The noise depends on seed and update alone, so order of the data and dropout are those of any
    other run of the seed. What is learnt has an Adam of its own, without weight decay, and takes no
    part in the norm to which the gradient of the weights is cut.
    """

    name: ClassVar[str]  # of what is learnt, in states and in heads.csv
    stream: ClassVar[Stream]

    def __init__(self, run: PrunedSettings, grid: HeadGrid, train: TrainSettings, seed: int):
        """`train`: the settings of the fine-tuning."""
        self.grid = grid
        self.train = train
        self.seed = seed
        self.gated = [i for i, head in enumerate(grid.heads()) if head.kind in run.kinds]
        self.learnt = torch.from_numpy(self.first()).requires_grad_()
        self.optimiser = torch.optim.Adam([self.learnt], **ADAM)
        self.update = 0  # the newest one that `choose` has served
        self._drawn = torch.empty(0)

    def first(self) -> np.ndarray:
        """What is learnt [gated heads] before the first update, in double precision."""
        raise NotImplementedError

    def sample(self, uniform: Tensor) -> Tensor:
        """Multipliers [gated heads] for uniform draws, differentiable by what is learnt."""
        raise NotImplementedError

    def rate(self) -> float:
        """Learning rate of the update at hand."""
        raise NotImplementedError

    def objective(self, loss: Tensor) -> Tensor:
        """What is lowered: the loss, and what a subclass adds to it."""
        return loss

    def test_time(self) -> Tensor:
        """Every head's multiplier once training is over, [heads] of the whole model."""
        raise NotImplementedError

    def at_end(self) -> dict[str, np.ndarray]:
        """Statistics of all heads for heads.csv; NaN where a head has none. `gate` says who stays.

        What is learnt is among them by its `name`.
        """
        raise NotImplementedError

    def choose(self, model: Transformer, batches: Sequence[Batch], update: int) -> Choice:
        """A draw of every multiplier, whose gradient the update asks for."""
        self.update = update
        self._drawn = self.sample(self._uniform(update, SMALLEST, 1 - SMALLEST))
        multiplier = torch.ones(self.grid.size)
        multiplier[self.gated] = self._drawn.detach().float()
        return Choice(multiplier.requires_grad_())

    def learn(self, slopes: Tensor) -> None:
        """One step of Adam."""
        gradient = slopes[self.gated].to(self._drawn.dtype)
        objective = self.objective((self._drawn * gradient).sum())
        self.optimiser.zero_grad(set_to_none=True)
        objective.backward()
        self.optimiser.param_groups[0]["lr"] = self.rate()
        self.optimiser.step()

    def at_validation(self) -> Tensor:
        """The multipliers of test time, [heads] of the whole model."""
        return self.test_time()

    def state(self) -> Weights:
        """What is learnt, and Adam's moments."""
        moments = self.optimiser.state[self.learnt]
        names = ("step", "exp_avg", "exp_avg_sq")
        return {self.name: self.learnt.detach(), **{name: moments[name] for name in names}}

    def restore(self, state: Weights) -> None:
        with torch.no_grad():
            self.learnt.copy_(state[self.name])
        moments = {name: state[name] for name in ("step", "exp_avg", "exp_avg_sq")}
        self.optimiser.state[self.learnt] = moments

    def whole(self, values: np.ndarray) -> np.ndarray:
        """Values of gated heads as those of all heads, NaN where a head has none."""
        found = np.full(self.grid.size, np.nan)
        found[self.gated] = values
        return found

    def _uniform(self, update: int, low: float, high: float) -> Tensor:
        """Draws [gated heads] of one update; update 0 is the start."""
        generator = self.stream.generator(self.seed, update)
        return torch.from_numpy(generator.uniform(low, high, len(self.gated)))
