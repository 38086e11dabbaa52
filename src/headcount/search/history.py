"""What the hypotheses of a search have behind them: keys and values, and which are whose.

Nothing is copied when hypotheses change places. A sentence has slots, where every hypothesis that
is alive fills one in each step; each remembers the slots it came by, and looks at those alone.
Slots that no hypothesis came by are given up when room runs out.

Letters in shapes: n sentences in the batch, h heads, m hypotheses of each sentence, t target
positions so far, k slots so far, e width of one head.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from headcount.model.attention import DenseAttention
from headcount.model.kernels.sparse_attention import SparseAttention
from headcount.model.layers import Memory, Targets

_STEPS = 8  # that there is room for without giving up slots, at the least
_LONGEST_NAMED = 80  # positions of a source; for a longer one a mask is as fast or faster


class Compaction:
    """Which rows of a batch stay when some leave; the last of those that stay fill the gaps.

    Few rows leave at a time, so few are copied. The order of rows changes.
    """

    def __init__(self, leaves: Sequence[bool], device: torch.device):
        """`leaves`: whether each row does; `device`: where the rows are."""
        self.count = leaves.count(False)  # of rows that stay
        self.leaving = [row for row, left in enumerate(leaves) if left]
        staying = [row for row, left in enumerate(leaves) if not left]
        gaps = [row for row in self.leaving if row < self.count]
        fillers = [row for row in staying if row >= self.count]
        self.moves = list(zip(gaps, fillers, strict=True))
        self.gaps, self.fillers = torch.tensor([gaps, fillers], dtype=torch.long, device=device)

    def of(self, rows: Tensor) -> Tensor:
        """Those of the rows [n, ...] that stay, [count, ...], in the same memory, overwritten."""
        rows[self.gaps] = rows.index_select(0, self.fillers)
        return rows[: self.count]

    def of_list(self, rows: list[int]) -> list[int]:
        """`of` for what the host has of each row."""
        for gap, filler in self.moves:
            rows[gap] = rows[filler]
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
        """`sparse`: a hypothesis names what it attends to; if not, a mask says so.

        Slots are given up in each `every`th step alone, at most the eighth: to count them waits for
        a GPU.
        """
        self.sparse = sparse
        self.every = every
        self.needed = every * beam  # slots from one such step to the next
        self.rooms: list[Tensor | None] = [None] * layers  # [2, n, k and more, h, e] each
        self.paths = torch.zeros(sentences, 1, 1, dtype=torch.long, device=device)  # [n, m, t]
        self.filled = 1  # k, with the slots of the step at hand
        self.size = _STEPS * beam  # slots that there is room for

    def look(self, memory: Memory) -> None:
        """Fix what each hypothesis attends to in the step at hand: its own slots, and its source.

        Its new slot is one of its own.
        """
        length = self.paths.shape[2]
        self.positions = slice(length - 1, length)
        if not self.sparse:
            self.self_attention = DenseAttention(self.seen())
        else:
            self.self_attention = SparseAttention(self.paths)
        if not self.sparse or memory.mask.shape[3] > _LONGEST_NAMED:
            self.cross_attention = DenseAttention(memory.mask)
        else:
            mask = memory.mask[:, 0]  # [n, 1, k]
            every = torch.arange(mask.shape[2]).expand(*self.paths.shape[:2], -1)
            self.cross_attention = SparseAttention(every, mask)

    def seen(self) -> Tensor:
        """[n, 1, m, k] Which slots each hypothesis may look at, its own new one included."""
        none = self.paths.new_zeros(*self.paths.shape[:2], self.filled, dtype=torch.bool)
        return none.scatter_(2, self.paths, True)[:, None]

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and values [n, h, k, e] with those of the step at hand, [n, h, m, e]."""
        sentences, heads, new, width = keys.shape
        room = self.rooms[layer]
        if room is None:
            room = keys.new_empty(2, sentences, self.size, heads, width)
            self.rooms[layer] = room
        room[0, :, self.filled - new : self.filled] = keys.transpose(1, 2)
        room[1, :, self.filled - new : self.filled] = values.transpose(1, 2)
        return tuple(room[:, :, : self.filled].transpose(2, 3).unbind(0))

    def follow(self, parents: Tensor) -> None:
        """Go on with the children of these hypotheses [n, m], each in a slot of its own."""
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
        """Move the slots that somebody came by to the front, in order, with room for as many."""
        flat = self.paths.flatten(1)
        came_by = self.paths.new_zeros(len(flat), self.filled, dtype=torch.bool)
        came_by.scatter_(1, flat, True)
        # As many slots for every sentence as the one with most needs; it sees its own only.
        self.filled = int(came_by.sum(1).max())
        kept = came_by.byte().argsort(dim=1, descending=True, stable=True)[:, : self.filled]
        self.paths = (came_by.cumsum(1) - 1).gather(1, flat).view_as(self.paths)
        self.size = max(self.size, 2 * self.filled, self.filled + self.needed)
        self.rooms = [_moved(room, kept, self.size) for room in self.rooms]


def _moved(room: Tensor, kept: Tensor, size: int) -> Tensor:
    """The slots `kept` [n, k] of a room, at the front of one of that size."""
    first = torch.arange(len(kept), device=kept.device)[:, None] * room.shape[2]
    flat = (first + kept).flatten()
    moved = room.new_empty(*room.shape[:2], size, *room.shape[3:])
    for old, new in zip(room, moved, strict=True):
        rows = old.flatten(0, 1).index_select(0, flat)
        new[:, : kept.shape[1]] = rows.view(*kept.shape, *old.shape[2:])
    return moved
