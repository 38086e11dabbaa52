"""Rows of a batch that shrinks, without a copy of all that stay."""

from torch import Tensor


class Compaction:
    """Which rows stay when some leave; the last of those that stay fill the gaps.

    Few rows leave at a time, so few are copied. The order of rows changes.
    """

    def __init__(self, leaving: Tensor):
        """`leaving`: [n], True = this row leaves."""
        self.count = int((~leaving).sum())  # of rows that stay
        self.gaps = leaving[: self.count].nonzero().squeeze(1)
        self.fillers = (~leaving[self.count :]).nonzero().squeeze(1) + self.count

    def of(self, rows: Tensor) -> Tensor:
        """Those of the rows [n, ...] that stay, [count, ...], in the same memory, overwritten."""
        rows[self.gaps] = rows.index_select(0, self.fillers)
        return rows[: self.count]
