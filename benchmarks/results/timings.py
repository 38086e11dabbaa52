"""Times of contenders who took turns: rates, shares of the ceiling, ratios, and their table."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Timed:
    """One contender's work, and the seconds that it took in every round."""

    name: str
    precision: str  # number format of its matrix products
    units: dict[str, float]  # what a run gets through, such as {"sentences": 1014}
    flops: float  # of the matrix products that the task needs
    seconds: list[float]

    @classmethod
    def of(cls, cells: dict[str, Any]) -> "Timed":
        """The contender of a record."""
        return cls(**{name: cells[name] for name in cls.__dataclass_fields__})

    def cells(self) -> dict[str, Any]:
        """What a record keeps of it; seconds to a microsecond."""
        return asdict(self) | {"seconds": [round(value, 6) for value in self.seconds]}

    @property
    def median(self) -> float:
        """Seconds of the middle round."""
        return statistics.median(self.seconds)

    def share(self, ceiling: dict[str, float]) -> float:
        """Its GFLOP/s at the median, by those of a square product in its number format."""
        return self.flops / self.median / 1e9 / ceiling[self.precision]


@dataclass(frozen=True)
class Ratio:
    """A contender's seconds by ours, round by round: above 1 ours is faster.

    Within a round the machine is about the same, so these move less than the seconds do.
    """

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, theirs: Timed, ours: Timed) -> "Ratio":
        """That of two contenders with equally many rounds."""
        found = [one / other for one, other in zip(theirs.seconds, ours.seconds, strict=True)]
        return cls(statistics.median(found), min(found), max(found))

    def __str__(self) -> str:
        """Median and range."""
        return f"{self.median:.2f} ({self.least:.2f}–{self.most:.2f})"


def ours(timed: Sequence[Timed], precision: str) -> Timed:
    """The first contender in a number format: the one that others in it are compared with."""
    return next(each for each in timed if each.precision == precision)


def table(timed: Sequence[Timed], ceiling: dict[str, float]) -> str:
    """Markdown table with a row for each contender, rates at the median, and how often they ran."""
    units = list(timed[0].units)
    counted = any(each.flops for each in timed)
    heads = ["", "min s", "median s", "max s", *(f"{unit}/s" for unit in units)]
    heads += ["GFLOP/s", "of ceiling"] if counted else []
    rows = []
    for each in timed:
        seconds = (min(each.seconds), each.median, max(each.seconds))
        row = [each.name, *(f"{value:.3f}" for value in seconds)]
        row += [f"{each.units[unit] / each.median:.0f}" for unit in units]
        if counted:
            row += [f"{each.flops / each.median / 1e9:.1f}", f"{each.share(ceiling):.0%}"]
        rows.append([*row, str(Ratio.of(each, ours(timed, each.precision)))])
    repeats = len(timed[0].seconds)
    times = "1 repeat" if repeats == 1 else f"{repeats} repeats in turns"
    note = f"{times}; ratio: its seconds / those of the first in its number format."
    return f"{markdown([*heads, 'ratio (min–max)'], rows)}\n\n{note}"


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """A table whose first columns are text and the others numbers."""
    lines = [heads, ["---"] * texts + ["--:"] * (len(heads) - texts), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
