"""Heads that an update of training masks: none, N at random, or the N most important.

Source: Sun et al. 2020 (HeadMask), section 3, algorithms 1 and 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headcount.base.addresses import HeadGrid
from headcount.base.random_streams import Stream
from headcount.base.settings.train import TrainSettings
from headcount.base.settings.training_runs import RunSettings
from headcount.data.batches import Batch
from headcount.heads.importance import batch_importance
from headcount.model.transformer import Transformer
from headcount.training.processes import add_up, own_share
from headcount.training.states import Weights


@dataclass(frozen=True)
class FirstPass:
    """Measurements of a first pass over all sentences of an update.

    Tensors are [heads] in fp64 on the CPU. Slopes are ∂L(x)/∂ξ at ξ = 1 of each sentence x.
    """

    sentences: int
    importance: Tensor  # ranks the heads, in the unit of the run, larger is more important
    slopes: Tensor  # their sum over sentences; above 0, the loss would fall without the head
    squares: Tensor  # the sum of their squares
    loss: float  # nats, summed over target tokens


@dataclass(frozen=True)
class Choice:
    """The masked heads of an update, and the first pass that chose them."""

    multiplier: Tensor | None = None  # [heads] on the CPU, 0 = masked; None: the run never masks
    first_pass: FirstPass | None = None

    @property
    def masked(self) -> list[bool]:
        """True for each masked head, in flat order. Empty in a run that never masks."""
        return [] if self.multiplier is None else (self.multiplier == 0).tolist()


class HeadMask:
    """Base class of ways to choose heads. This one is the baseline's, which masks none."""

    def choose(self, model: Transformer, batches: Sequence[Batch], update: int) -> Choice:
        """Return the heads that an update, counted from 1, masks in all of its batches."""
        return Choice()

    def learn(self, slopes: Tensor) -> None:
        """Learn from the multiplier's gradient [heads], summed over all batches of the update.

        Called only if the multiplier requires a gradient.
        """

    def at_validation(self) -> Tensor | None:
        """Return the multiplier [heads] under which the dev set is scored, None for all heads."""
        return None

    def state(self) -> Weights:
        """Return all that a resumed run needs."""
        return {}

    def restore(self, state: Weights) -> None:
        """Go on from a saved `state`."""


class MaskN(HeadMask):
    """Base class of masks of N heads. A masked head then rests for `cooldown_updates`.

    The first `start_update` updates mask none.
    """

    def __init__(self, run: RunSettings, grid: HeadGrid, seed: int):
        self.run = run
        self.seed = seed
        self.size = grid.size
        maskable = [i for i, head in enumerate(grid.heads()) if head.kind != run.exclude_kind]
        self.maskable = torch.tensor(maskable).long()
        self.free_from = torch.zeros(grid.size)  # the first update that may mask each head again

    def free(self, update: int) -> Tensor:
        """Return the heads (flat positions, sorted) that an update may mask."""
        return self.maskable[self.free_from[self.maskable] <= update]

    def mask(self, heads: Tensor, update: int) -> list[int]:
        """Return heads as a list, and let them rest after the update."""
        if self.run.cooldown_updates:
            self.free_from[heads] = update + self.run.cooldown_updates + 1
        return heads.tolist()

    def multiplier(self, masked: Sequence[int]) -> Tensor:
        """Return the multiplier [heads] that masks these heads."""
        multiplier = torch.ones(self.size)
        multiplier[list(masked)] = 0
        return multiplier

    def state(self) -> Weights:
        return {"free_from": self.free_from.clone()} if self.run.cooldown_updates else {}

    def restore(self, state: Weights) -> None:
        self.free_from = state.get("free_from", self.free_from).clone()


class MaskRandom(MaskN):
    """Random-N: N distinct heads, each set of N that may be masked alike (algorithm 1).

    Whole layers may be masked by chance. The draw depends on seed and update alone, unless heads
    rest. Initial weights, order of the data and dropout are the baseline's.
    """

    def choose(self, model: Transformer, batches: Sequence[Batch], update: int) -> Choice:
        if update <= self.run.start_update:
            return Choice(self.multiplier([]))
        free = self.free(update)
        draws = Stream.HEAD_MASK.generator(self.seed, update)
        drawn = draws.choice(len(free), self.run.heads, replace=False)
        return Choice(self.multiplier(self.mask(free[drawn], update)))


class MaskImportant(MaskN):
    """Impt-N: the N heads most important for the very batches of the update (algorithm 2).

    A first pass with all heads and without dropout measures the importance for the loss that
    training lowers, label smoothing included, and changes nothing. Variants, not in the paper, are
    keys of `RunSettings` and described there: `probability`, `signed`, `unit`, `decay`,
    `exclude_kind`, `cooldown_updates`, `warmup_mask_updates`, `start_update`.
    """

    def __init__(self, run: RunSettings, grid: HeadGrid, settings: TrainSettings, seed: int):
        super().__init__(run, grid, seed)
        self.settings = settings
        self.importance = torch.zeros(grid.size)  # discounted sum, which ranks as the average does

    def choose(self, model: Transformer, batches: Sequence[Batch], update: int) -> Choice:
        """Return the N most important heads of a first pass, equal ones in flat order.

        The first `start_update` updates make no pass. In the `warmup_mask_updates` after them, the
        masked heads are N that were drawn for the whole run. Their importance is measured, too.
        """
        held = update <= self.run.rule_from
        draws = Stream.HEAD_MASK.generator(self.seed, update)
        skipped = not held and draws.random() >= self.run.probability
        if update <= self.run.start_update or skipped:
            return Choice(self.multiplier([]))
        first_pass = self._first_pass(model, batches)
        self.importance = self.run.decay * self.importance + first_pass.importance.float()
        masked = self._held_heads() if held else self._most_important(update)
        return Choice(self.multiplier(masked), first_pass)

    def state(self) -> Weights:
        return {"importance": self.importance, **super().state()}

    def restore(self, state: Weights) -> None:
        super().restore(state)
        self.importance = state["importance"]

    def _most_important(self, update: int) -> list[int]:
        free = self.free(update)
        ranked = self.importance[free].sort(descending=True, stable=True)
        most = ranked.indices[: self.run.heads]
        if self.run.signed:
            most = most[ranked.values[: self.run.heads] > 0]
        return self.mask(free[most], update)

    def _held_heads(self) -> list[int]:
        """Return N heads, drawn by the seed alone: no update has the number 0."""
        draws = Stream.HEAD_MASK.generator(self.seed, 0)
        return draws.choice(self.maskable.numpy(), self.run.heads, replace=False).tolist()

    def _first_pass(self, model: Transformer, batches: Sequence[Batch]) -> FirstPass:
        """Measure all heads on the update's batches, without dropout."""
        precision, smoothing = self.settings.precision, self.settings.label_smoothing
        unit = "none" if self.run.signed else self.run.unit
        # In fp64, so that processes which share the batches out rank heads as one process does.
        total = 0.0
        for _, batch in own_share(batches):
            part = batch_importance(model, batch, unit, precision, smoothing)
            slopes = part.slopes.double()
            importance = (len(batch.indices) * part.importance).double()
            sums = importance, slopes.sum(0), slopes.square().sum(0), part.loss.double()[None]
            total = total + torch.cat(sums)
        add_up([total])
        *sums, loss = total.tolist()  # the one thing that a GPU is waited for
        importance, slopes, squares = torch.tensor(sums, dtype=torch.float64).view(3, -1)
        sentences = sum(len(batch.indices) for batch in batches)
        return FirstPass(sentences, importance / sentences, slopes, squares, loss)


def make_head_mask(
    run: RunSettings, grid: HeadGrid, settings: TrainSettings, seed: int
) -> HeadMask:
    """Return the way to choose heads of a training run, for a model with these heads."""
    if run.method == "random":
        return MaskRandom(run, grid, seed)
    return MaskImportant(run, grid, settings, seed) if run.method == "importance" else HeadMask()
