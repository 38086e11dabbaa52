"""Keys and values of the hypotheses of a search, and the paths of hypotheses through them.

Nothing is copied when hypotheses change places. A sentence has slots, and every live hypothesis
fills one in each step. Its path lists its slots, and it attends to these alone. Slots on no path
are dropped when room runs out.

Letters in shapes: n sentences in the batch, h heads, m hypotheses of each sentence, t target
positions so far, k slots so far, e width of one head.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from headcount.model.attention import DenseAttention
from headcount.model.kernels.sparse_attention import SparseAttention
from headcount.model.layers import Memory, Targets

_STEPS = 8  # for which there is room at first
_LONGEST_NAMED = 80  # positions of a source: for a longer one a mask is as fast or faster


class Compaction:
    """Rows of a batch that stay when others leave. The last rows fill the gaps."""

    def __init__(self, leaves: Sequence[bool], device: torch.device):
        """`leaves`: True for rows that leave. `device`: of the rows."""
        self.count = leaves.count(False)  # of rows that stay
        self.leaving = [row for row, left in enumerate(leaves) if left]
        staying = [row for row, left in enumerate(leaves) if not left]
        gaps = [row for row in self.leaving if row < self.count]
        fillers = [row for row in staying if row >= self.count]
        self.order = list(range(self.count))  # former places of the rows that stay
        for gap, filler in zip(gaps, fillers, strict=True):
            self.order[gap] = filler
        self.gaps, self.fillers = torch.tensor([gaps, fillers], dtype=torch.long, device=device)

    def of(self, rows: Tensor) -> Tensor:
        """Return the rows [count, ...] of [n, ...] that stay, in the same memory, overwritten."""
        rows[self.gaps] = rows.index_select(0, self.fillers)
        return rows[: self.count]


class History(Targets):
    """The keys and values of each decoder layer, in slots, and the paths of the hypotheses."""

    def __init__(
        self,
        layers: int,
        sentences: int,
        beam: int,
        device: torch.device,
        sparse: bool = False,
        every: int = 1,
    ):
        """`sparse`: attend by lists of slots instead of a mask. `every`: steps until a tidying."""
        self.sparse, self.every = sparse, every
        self.needed = every * beam  # slots from one such step to the next
        self.rooms: list[Tensor | None] = [None] * layers  # [2, n, k and more, h, e] by layer
        self.paths = torch.zeros(sentences, 1, 1, dtype=torch.long, device=device)  # [n, m, t]
        self.filled = 1  # k, with the slots of the current step
        self.size = _STEPS * beam  # slots that there is room for

    def look(self, memory: Memory) -> None:
        """Set the attention of the current step: to the slots of a path, and to the source."""
        length, rows = self.paths.shape[2], self.paths.shape[:2]
        self.positions = slice(length - 1, length)
        if self.sparse:
            self.self_attention = SparseAttention(self.paths)
        else:
            none = self.paths.new_zeros(*rows, self.filled, dtype=torch.bool)
            self.self_attention = DenseAttention(none.scatter_(2, self.paths, True)[:, None])
        self.cross_attention = DenseAttention(memory.mask)
        if self.sparse and memory.mask.shape[3] <= _LONGEST_NAMED:
            mask = memory.mask[:, 0]  # [n, 1, k]
            every = torch.arange(mask.shape[2]).expand(*rows, -1)
            self.cross_attention = SparseAttention(every, mask)

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return all keys and values [n, h, k, e], after adding the current step's [n, h, m, e]."""
        sentences, heads, new, width = keys.shape
        if self.rooms[layer] is None:
            self.rooms[layer] = keys.new_empty(2, sentences, self.size, heads, width)
        room = self.rooms[layer]
        for part, given in zip(room, (keys, values), strict=True):
            part[:, self.filled - new : self.filled] = given.transpose(1, 2)
        return tuple(room[:, :, : self.filled].transpose(2, 3).unbind(0))

    def follow(self, parents: Tensor) -> None:
        """Continue with children of these hypotheses [n, m], every child in a new slot."""
        rows = parents[..., None].expand(-1, -1, self.paths.shape[2])
        self.paths = self.paths.gather(1, rows)
        new = parents.shape[1]
        if self.paths.shape[2] % self.every == 0 and self.filled + self.needed > self.size:
            self._tidy()
        slots = torch.arange(new, device=parents.device).expand_as(parents) + self.filled
        self.paths = torch.cat((self.paths, slots[..., None]), dim=2)
        self.filled += new

    def keep(self, staying: Compaction) -> None:
        """Drop the sentences that leave."""
        self.paths = staying.of(self.paths)
        for layer, room in enumerate(self.rooms):
            staying.of(room[:, :, : self.filled].transpose(0, 1))
            self.rooms[layer] = room[:, : staying.count]

    def _tidy(self) -> None:
        """Move the slots of paths to the front, in order, and make room for as many."""
        flat = self.paths.flatten(1)
        used = self.paths.new_zeros(len(flat), self.filled, dtype=torch.bool)
        used.scatter_(1, flat, True)
        self.filled = int(used.sum(1).max())
        kept = used.byte().argsort(dim=1, descending=True, stable=True)[:, : self.filled]
        self.paths = (used.cumsum(1) - 1).gather(1, flat).view_as(self.paths)
        self.size = max(self.size, 2 * self.filled, self.filled + self.needed)
        self.rooms = [_moved(room, kept, self.size) for room in self.rooms]


def _moved(room: Tensor, kept: Tensor, size: int) -> Tensor:
    """Return a room of this size with the slots `kept` [n, k] of another at the front."""
    first = torch.arange(len(kept), device=kept.device)[:, None] * room.shape[2]
    flat = (first + kept).flatten()
    moved = room.new_empty(*room.shape[:2], size, *room.shape[3:])
    for old, new in zip(room, moved, strict=True):
        rows = old.flatten(0, 1).index_select(0, flat)
        new[:, : kept.shape[1]] = rows.view(*kept.shape, *old.shape[2:])
    return moved
