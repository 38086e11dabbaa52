"""Keys and values that a search keeps from step to step.

Letters in shapes: n sentences in the batch, h heads, m slots that a step fills, k slots so far,
e width of one head.
"""

from torch import Tensor

from headcount.runs.compaction import Compaction


class Cache:
    """Keys and values of the targets so far, for one decoder layer; there is room for more."""

    def __init__(self) -> None:
        self.slots = 0
        self.room: Tensor | None = None  # [2, n, h, k and more, e]

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and values [n, h, k, e] after adding those of m new slots, [n, h, m, e]."""
        before, self.slots = self.slots, self.slots + keys.shape[2]
        if self.room is None:
            self.room = keys.new_empty(2, *keys.shape[:2], 2 * self.slots, keys.shape[3])
        elif self.slots > self.room.shape[3]:
            self._make_room(before)
        self.room[0, :, :, before : self.slots] = keys
        self.room[1, :, :, before : self.slots] = values
        return tuple(self.room[:, :, :, : self.slots].unbind(0))

    def keep(self, staying: Compaction) -> None:
        """Drop the sentences that leave."""
        staying.of(self.room[:, :, :, : self.slots].transpose(0, 1))
        self.room = self.room[:, : staying.count]

    def _make_room(self, filled: int) -> None:
        """Take the filled slots to a new place with room for as many more."""
        old = self.room[:, :, :, :filled]
        self.room = old.new_empty(*old.shape[:3], 2 * self.slots, old.shape[4])
        self.room[:, :, :, :filled] = old
