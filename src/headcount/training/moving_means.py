"""Moving mean outputs of heads, which masked heads of a `centred` run give in place of zeros."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from headcount.data.batches import Batch
from headcount.heads.head_outputs import real_queries
from headcount.model.observed import watch_inputs
from headcount.model.removal import set_means
from headcount.model.transformer import Transformer
from headcount.training.processes import add_up
from headcount.training.states import Weights

NEW = 0.05
"""Weight of an update's own mean: the average reaches back over some twenty updates."""


class MovingMeans:
    """The mean output of every head before W_O, [heads, e], over real positions and updates.

    Until the first update there is none, and slopes are those of the whole output.
    """

    def __init__(self) -> None:
        self.means: Tensor | None = None
        self._sums: Tensor | None = None  # of the update at hand, [heads, e + 1]: and positions

    @contextmanager
    def of(self, model: Transformer, batch: Batch) -> Iterator[None]:
        """Context in which a batch passes once, every multiplier 1; slopes are about the means."""
        set_means(model, self.means)
        with watch_inputs(module.output for *_, module in model.attentions()) as entering:
            yield
        with torch.no_grad():
            sums = _sums(model, batch, entering)
            self._sums = sums if self._sums is None else self._sums + sums

    def move(self, model: Transformer) -> None:
        """Take in the batches of the update; the model's silent heads give the new means."""
        sums, self._sums = self._sums, None
        add_up([sums])
        now = (sums[:, :-1] / sums[:, -1:]).float()
        self.means = now if self.means is None else self.means.to(now.device).lerp(now, NEW)
        set_means(model, self.means)

    def state(self) -> Weights:
        """What a resumed run needs; nothing before the first update."""
        return {} if self.means is None else {"means": self.means}

    def restore(self, state: Weights) -> None:
        """Go on from what `state` made."""
        self.means = state.get("means")


def _sums(model: Transformer, batch: Batch, entering: Mapping[nn.Module, Tensor]) -> Tensor:
    """Sums of head outputs over real query positions, and how many: [heads, e + 1] in fp64."""
    parts = []
    for kind, _, module in model.attentions():
        here = real_queries(batch, kind)[..., None]
        total = (entering[module.output] * here).double().sum((0, 1))
        by_head = total.view(module.heads, module.d_head)
        parts.append(torch.cat((by_head, here.sum().double().expand(module.heads, 1)), dim=1))
    return torch.cat(parts)
