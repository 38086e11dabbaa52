"""What the project wants of its speed, and whether records have it."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.results.record import Record
from benchmarks.results.timings import Ratio, Timed, ours

SIZES = ("small", "base")
TRAINING = {"fp32": 2.0, "bf16": 1.3}
"""Of these sizes, times as fast as the fastest peer, by the peer's number format. Ours is in its
faster one, as `train.precision: auto` takes bf16 where that gains."""

ON_A_GPU = 0.4
"""Share of the ceiling in bf16, of training at `base`."""

SEARCH, ABLATION = 1.0, 2.0
"""Times as fast as CTranslate2 in fp32, and as a search for each head."""

HEADMASK = {"random": 1.03, "impt": 1.7}
"""Updates in those of the baseline, at most."""

PLANNING = {500: 3.0, 5000: 15.0}
"""Seconds at most, by jobs at least."""


@dataclass(frozen=True)
class Verdict:
    """One goal, and what was measured."""

    what: str
    goal: str
    found: str
    met: bool

    @property
    def row(self) -> list[str]:
        """The cells of a table."""
        return [self.what, self.goal, self.found, "met" if self.met else "**not met**"]


def verdicts(records: Sequence[Record]) -> list[Verdict]:
    """Those of all records that a goal is about, in their order."""
    return [
        verdict
        for record in records
        if "failed" not in record and record["benchmark"] in _GOALS
        for verdict in _GOALS[record["benchmark"]](record)
    ]


def _training(record: Record) -> Iterator[Verdict]:
    timed, what = _timed(record), _what(record)
    if record["flags"]["preset"] not in SIZES:
        return
    for precision, goal in TRAINING.items():
        peers = [t for t in timed if t.precision == precision and not t.name.startswith("ours")]
        if peers:
            own = min((t for t in timed if t.name.startswith("ours")), key=lambda t: t.median)
            than = f"the fastest peer in {precision} ({', '.join(p.name for p in peers)})"
            yield _faster(f"{what}, {own.name}", than, peers, own, goal)
    if record["where"]["gpu"] and record["flags"]["preset"] == "base":
        for each in timed:
            if each.precision == "bf16" and each.name.startswith("ours"):
                share = each.share(record["where"]["ceiling"])
                goal = f"at least {ON_A_GPU:.0%} of the ceiling"
                yield Verdict(f"{what}, {each.name}", goal, f"{share:.0%}", share >= ON_A_GPU)


def _search(record: Record) -> Iterator[Verdict]:
    timed = _timed(record)
    peers = [each for each in timed if re.match("CTranslate2 fp32", each.name)]
    if peers:
        own = ours(timed, "fp32")
        yield _faster(_what(record), "CTranslate2 in fp32", peers, own, SEARCH)


def _ablation(record: Record) -> Iterator[Verdict]:
    timed = _timed(record)
    naive = [each for each in timed if each.name == "head by head"]
    own = ours(timed, "fp32")
    yield _faster(_what(record), "a search for each head", naive, own, ABLATION)


def _headmask(record: Record) -> Iterator[Verdict]:
    timed = _timed(record)
    for each in timed:
        for method, most in HEADMASK.items():
            if each.name.startswith(method):
                cost = Ratio.of(each, ours(timed, each.precision))
                goal = f"at most {most} updates of the baseline"
                yield Verdict(f"{_what(record)}, {method}", goal, str(cost), cost.median <= most)


def _planning(record: Record) -> Iterator[Verdict]:
    for jobs, most in PLANNING.items():
        enough = [row for row in record["rows"] if row["jobs"] >= jobs]
        least = min((row["jobs"] for row in enough), default=0)
        for row in enough:
            if row["jobs"] < 1.2 * least:
                what = f"Plan of {row['jobs']:,} jobs: {row['plan']}"
                found = f"{row['wall']:.1f} s"
                goal = f"at most {most:g} s at {jobs:,} jobs"
                yield Verdict(what, goal, found, row["wall"] <= most)


_GOALS: dict[str, Callable[[Record], Iterator[Verdict]]] = {
    "training": _training,
    "decoding": _search,
    "ablation": _ablation,
    "headmask_cost": _headmask,
    "planning": _planning,
}


def _faster(what: str, than: str, peers: Sequence[Timed], own: Timed, goal: float) -> Verdict:
    """Whether ours is so many times as fast as the fastest of the peers, by medians of ratios."""
    ratio = min((Ratio.of(peer, own) for peer in peers), key=lambda each: each.median)
    best = next(peer for peer in peers if Ratio.of(peer, own) == ratio)
    words = f"at least {goal} times as fast as {than}"
    return Verdict(what, words, f"{ratio}, {best.name}", ratio.median >= goal)


def _timed(record: Record) -> list[Timed]:
    return [Timed.of(cells) for cells in record["timed"]]


def _what(record: Record) -> str:
    threads = "" if record["where"]["gpu"] else f", {threads_of(record)}"
    return record["title"].rstrip(".") + threads


def threads_of(record: Record) -> str:
    """How many threads, in words."""
    count = record["where"]["threads"]
    return f"{count} thread{'s' * (count > 1)}"
