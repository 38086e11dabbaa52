"""Heads that an update of training masks: none, some at random, or the N most important.

Sources: Sun et al. 2020 (HeadMask), section 3, algorithms 1 and 2; Zhou et al. 2020 (DropHead).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
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
    """A first pass over all sentences x of an update: [heads] in fp64 of ∂L(x)/∂ξ at ξ = 1."""

    sentences: int
    importance: Tensor  # ranks the heads, in the unit of the run, larger is more important
    slopes: Tensor  # their sum over sentences; above 0, the loss would fall without the head
    squares: Tensor  # the sum of their squares
    loss: float  # nats, summed over target tokens


@dataclass(frozen=True)
class Choice:
    """The masked heads of an update, and the first pass that chose them."""

    # [heads], or [sentences of the update, heads], on the CPU, 0 = masked; None: never masks
    multiplier: Tensor | None = None
    first_pass: FirstPass | None = None

    @property
    def masked(self) -> list[bool | float]:
        """True for each masked head, in flat order, or the share of sentences that mask it."""
        if self.multiplier is None:
            return []
        silent = self.multiplier == 0
        return (silent if silent.ndim == 1 else silent.double().mean(0)).tolist()


class HeadMask:
    """Base class of ways to choose heads. This one is the baseline's, which masks none."""

    def choose(self, model: Transformer, batches: Sequence[Batch], update: int) -> Choice:
        """Return the heads that an update, counted from 1, masks in all of its batches."""
        return Choice()

    def learn(self, slopes: Tensor) -> None:
        """Learn from the gradient [heads] of a multiplier that requires one, of all batches."""

    def at_validation(self) -> Tensor | None:
        """Return the multiplier [heads] under which the dev set is scored, None for all heads."""
        return None

    def state(self) -> Weights:
        """Return all that a resumed run needs."""
        return {}

    def restore(self, state: Weights) -> None:
        """Go on from a saved `state`."""


class Masking(HeadMask):
    """Base class of masks by the settings of a run. Its first `start_update` updates mask none."""

    def __init__(self, run: RunSettings, grid: HeadGrid, settings: TrainSettings, seed: int):
        self.run = run
        self.grid = grid
        self.settings = settings
        self.seed = seed
        layers = [
            torch.arange(span.start, span.stop)
            for kind, _, span in grid.layers()
            if kind != run.exclude_kind and span.start < span.stop
        ]
        by_layer = run.chosen("scope") == "layer" or not layers
        self.rows = layers if by_layer else [torch.cat(layers)]  # N heads of each row are masked
        self.free_from = torch.zeros(grid.size)  # the first update that may mask each head again

    def choice(self, masked: Tensor, first_pass: FirstPass | None = None) -> Choice:
        """Return the choice of the heads that are True in [heads] or [sentences, heads].

        With `rescale`, the heads left in a layer are multiplied by its heads ÷ heads left.
        """
        multiplier = (~masked).float()
        for _, _, span in self.grid.layers() if self.run.chosen("rescale") == "layer" else ():
            row = multiplier[..., span]
            row *= row.shape[-1] / row.sum(-1, keepdim=True).clamp(min=1)
        return Choice(multiplier, first_pass)

    def none(self) -> Tensor:
        """Return no masked head, [heads]."""
        return torch.zeros(self.grid.size, dtype=torch.bool)

    def free(self, update: int) -> list[Tensor]:
        """Return the heads of each row (flat positions, sorted) that an update may mask."""
        return [row[self.free_from[row] <= update] for row in self.rows]

    def rest(self, masked: Tensor, update: int) -> Tensor:
        """Return the masked heads [heads], which rest for `cooldown_updates` after the update."""
        if self.run.cooldown_updates:
            self.free_from[masked] = update + self.run.cooldown_updates + 1
        return masked

    def state(self) -> Weights:
        return {"free_from": self.free_from.clone()} if self.run.cooldown_updates else {}

    def restore(self, state: Weights) -> None:
        self.free_from = state.get("free_from", self.free_from).clone()


class MaskRandom(Masking):
    """Random-N (algorithm 1): N distinct heads, each set of N that may be masked alike.

    DropHead (Zhou et al. 2020) masks every head with probability p instead. N and p follow the
    schedule. The draw depends on seed, update and the sentence's place in it alone, unless heads
    rest.
    """

    def choose(self, model: Transformer, batches: Sequence[Batch], update: int) -> Choice:
        if update <= self.run.start_update:
            return self.choice(self.none())
        draws = Stream.HEAD_MASK.generator(self.seed, update)
        share = strength(self.run.chosen("schedule"), self.settings, update)
        if self.run.chosen("draw") == "update":
            return self.choice(self.rest(self._draw(draws, share, update), update))
        sentences = range(sum(len(batch.indices) for batch in batches))
        return self.choice(torch.stack([self._draw(draws, share, update) for _ in sentences]))

    def _draw(self, draws: np.random.Generator, share: float, update: int) -> Tensor:
        """Return the masked heads [heads] of one draw."""
        if self.run.head_probability is not None:
            limit = share * self.run.head_probability
            return torch.from_numpy(draws.random(self.grid.size) < limit)
        masked, count = self.none(), math.floor(share * self.run.heads + 0.5)
        for free in self.free(update):
            masked[free[draws.choice(len(free), count, replace=False)]] = True
        return masked


def strength(schedule: str, settings: TrainSettings, update: int) -> float:
    """Return N or p of an update, counted from 1, as a share of the run's.

    `v` falls to 0 at the end of the learning rate's warm-up and rises to 1 at the last update.
    """
    warmup, updates = settings.warmup_updates, settings.updates
    if schedule == "v" and update <= warmup:
        return 1 - update / warmup
    start = warmup if schedule == "v" else 0
    return 1.0 if schedule == "constant" else (update - start) / (updates - start)


class MaskImportant(Masking):
    """Impt-N: the N heads most important for the very batches of the update (algorithm 2).

    A first pass with all heads and without dropout measures the importance for the loss that
    training lowers, label smoothing included, and changes nothing. Variants, not in the paper, are
    keys of `RunSettings` and described there.
    """

    def __init__(self, run: RunSettings, grid: HeadGrid, settings: TrainSettings, seed: int):
        super().__init__(run, grid, settings, seed)
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
            return self.choice(self.none())
        first_pass = self._first_pass(model, batches)
        self.importance = self.run.decay * self.importance + first_pass.importance.float()
        masked = self.none()
        if held:  # N heads, drawn by the seed alone: no update has the number 0
            draws = Stream.HEAD_MASK.generator(self.seed, 0)
            for row in self.rows:
                masked[draws.choice(row.numpy(), self.run.heads, replace=False)] = True
            return self.choice(masked, first_pass)
        for free in self.free(update):
            ranked = self.importance[free].sort(descending=True, stable=True)
            most = ranked.indices[: self.run.heads]
            if self.run.signed:
                most = most[ranked.values[: self.run.heads] > 0]
            masked[free[most]] = True
        return self.choice(self.rest(masked, update), first_pass)

    def state(self) -> Weights:
        return {"importance": self.importance, **super().state()}

    def restore(self, state: Weights) -> None:
        super().restore(state)
        self.importance = state["importance"]

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
    if run.method == "baseline":
        return HeadMask()
    kind = MaskImportant if run.method == "importance" else MaskRandom
    return kind(run, grid, settings, seed)
