"""Which heads an update of training masks: none, N at random, or the N most important.

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
from headcount.training.processes import add_up, own
from headcount.training.states import Weights


@dataclass(frozen=True)
class FirstPass:
    """What a first pass finds, over the sentences of all batches of an update.

    Of heads, [heads] in fp64 on the CPU; slopes are ∂L(x)/∂ξ at ξ = 1 of each sentence x.
    """

    sentences: int
    importance: Tensor  # what ranks the heads, in the unit of the run; larger, more important
    slopes: Tensor  # their sum over sentences; above 0, the loss would fall without the head
    squares: Tensor  # the sum of their squares
    loss: float  # nats, summed over target tokens


@dataclass(frozen=True)
class Choice:
    """What an update does with the heads."""

    multiplier: Tensor | None = None  # [heads] on the CPU, 0 = masked; None: the run never masks
    first_pass: FirstPass | None = None  # None: there was none

    @property
    def masked(self) -> list[bool]:
        """Whether each head is masked, in flat order; empty in a run that never masks."""
        return [] if self.multiplier is None else (self.multiplier == 0).tolist()


class HeadMask:
    """What training asks of a way to choose heads, with a baseline's answers: it uses all."""

    def choose(self, model: Transformer, batches: Sequence[Batch], update: int) -> Choice:
        """What an update, counted from 1, does with the heads, in all of its batches."""
        return Choice()

    def learn(self, slopes: Tensor) -> None:
        """Learn from the multiplier's gradient [heads], summed over all batches of the update.

        Asked of those alone whose multiplier requires one.
        """

    def at_validation(self) -> Tensor | None:
        """The multiplier [heads] under which the dev set is scored; None: all heads as they are."""
        return None

    def state(self) -> Weights:
        """All that a resumed run needs."""
        return {}

    def restore(self, state: Weights) -> None:
        """Go on from a state that was saved: `state` makes it."""


class Rest:
    """Which heads may be masked: not those that were in so many updates before. Not of a paper."""

    def __init__(self, heads: int, updates: int):
        self.updates = updates
        self.free_from = torch.zeros(heads)  # the first update that may mask each head again

    def free(self, heads: Tensor, update: int) -> Tensor:
        """Those of the heads (flat positions, in their order) that the update may mask."""
        return heads[self.free_from[heads] <= update]

    def begin(self, masked: list[int], update: int) -> None:
        """Let the heads rest that the update masks."""
        if self.updates:
            self.free_from[masked] = update + self.updates + 1

    def state(self) -> Weights:
        """What a resumed run needs; nothing where no head rests."""
        return {"free_from": self.free_from.clone()} if self.updates else {}

    def restore(self, state: Weights) -> None:
        """Go on from what `state` made."""
        if self.updates:
            self.free_from = state["free_from"].clone()


class MaskRandom(HeadMask):
    """Random-N: N distinct heads, each set of N that may be masked alike (algorithm 1).

    Whole layers may be masked by chance. The draw depends on seed and update alone, unless heads
    `cooldown_updates` (not in the paper); initial weights, order of the data and dropout are the
    baseline's. The first `start_update` updates mask none.
    """

    def __init__(self, run: RunSettings, heads: int, seed: int):
        self.run = run
        self.heads = torch.arange(heads)
        self.seed = seed
        self.rest = Rest(heads, run.cooldown_updates)

    def choose(self, model: Transformer, batches: Sequence[Batch], update: int) -> Choice:
        if update <= self.run.start_update:
            return Choice(_multiplier(len(self.heads), []))
        draws = Stream.HEAD_MASK.generator(self.seed, update)
        free = self.rest.free(self.heads, update)
        masked = free[draws.choice(len(free), self.run.heads, replace=False)].tolist()
        self.rest.begin(masked, update)
        return Choice(_multiplier(len(self.heads), masked))

    def state(self) -> Weights:
        return self.rest.state()

    def restore(self, state: Weights) -> None:
        self.rest.restore(state)


class MaskImportant(HeadMask):
    """Impt-N: the N heads most important for the very batches of the update (algorithm 2).

    A first pass with all heads and without dropout measures the importance for the loss that
    training lowers, label smoothing included, and changes nothing. Variants, not in the paper, are
    keys of `RunSettings` and described there: `probability`, `signed`, `unit`, `decay`,
    `exclude_kind`, `cooldown_updates`, `warmup_mask_updates`, `start_update`.
    """

    def __init__(self, run: RunSettings, grid: HeadGrid, settings: TrainSettings, seed: int):
        self.run = run
        self.settings = settings
        self.seed = seed
        self.heads = grid.size
        heads = list(enumerate(grid.heads()))
        maskable = [i for i, head in heads if head.kind != run.exclude_kind]
        self.maskable = torch.tensor(maskable).long()
        self.rest = Rest(grid.size, run.cooldown_updates)
        self.importance = torch.zeros(grid.size)  # discounted sum, which ranks as the average does

    def choose(self, model: Transformer, batches: Sequence[Batch], update: int) -> Choice:
        """The N heads that a first pass finds most important; equal ones in flat order.

        Heads that rest are left out. None in the first `start_update` updates, without a pass. In
        the `warmup_mask_updates` after them, N heads that were drawn for the whole run; the pass is
        made all the same.
        """
        if update <= self.run.start_update:
            return Choice(_multiplier(self.heads, []))
        held = update <= self.run.rule_from
        draws = Stream.HEAD_MASK.generator(self.seed, update)
        if not held and draws.random() >= self.run.probability:
            return Choice(_multiplier(self.heads, []))
        found = self._first_pass(model, batches)
        self.importance = self.run.decay * self.importance + found.importance.float()
        masked = self._held_heads() if held else self._most_important(update)
        return Choice(_multiplier(self.heads, masked), found)

    def state(self) -> Weights:
        return {"importance": self.importance, **self.rest.state()}

    def restore(self, state: Weights) -> None:
        self.importance = state["importance"]
        self.rest.restore(state)

    def _most_important(self, update: int) -> list[int]:
        free = self.rest.free(self.maskable, update)
        ranked = self.importance[free].sort(descending=True, stable=True)
        most = ranked.indices[: self.run.heads]
        if self.run.signed:
            most = most[ranked.values[: self.run.heads] > 0]
        masked = free[most].tolist()
        self.rest.begin(masked, update)
        return masked

    def _held_heads(self) -> list[int]:
        """N heads, drawn by the seed alone: no update has the number 0."""
        draws = Stream.HEAD_MASK.generator(self.seed, 0)
        return draws.choice(self.maskable.numpy(), self.run.heads, replace=False).tolist()

    def _first_pass(self, model: Transformer, batches: Sequence[Batch]) -> FirstPass:
        """What the update's batches say of the heads, all of them on and dropout off."""
        precision, smoothing = self.settings.precision, self.settings.label_smoothing
        unit = "none" if self.run.signed else self.run.unit
        # In fp64, so that processes which share the batches out rank heads as one process does.
        total = 0.0
        for _, batch in own(batches):
            found = batch_importance(model, batch, unit, precision, smoothing)
            slopes = found.slopes.double()
            importance = (len(batch.indices) * found.importance).double()
            sums = importance, slopes.sum(0), slopes.square().sum(0), found.loss.double()[None]
            total = total + torch.cat(sums)
        add_up([total])
        *sums, loss = total.tolist()  # the one thing that a GPU is waited for
        importance, slopes, squares = torch.tensor(sums, dtype=torch.float64).view(3, -1)
        sentences = sum(len(batch.indices) for batch in batches)
        return FirstPass(sentences, importance / sentences, slopes, squares, loss)


def make_head_mask(
    run: RunSettings, grid: HeadGrid, settings: TrainSettings, seed: int
) -> HeadMask:
    """The way to choose heads that a run's name says, for a model with these heads."""
    if run.method == "random":
        return MaskRandom(run, grid.size, seed)
    return MaskImportant(run, grid, settings, seed) if run.method == "importance" else HeadMask()


def _multiplier(heads: int, masked: Sequence[int]) -> Tensor:
    multiplier = torch.ones(heads)
    multiplier[list(masked)] = 0
    return multiplier
