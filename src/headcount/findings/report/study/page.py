"""The study of HeadMask as one page, from the tables of kept runs below docs/results.

Every number and every verdict of the page is read or computed from these.
"""

from collections.abc import Callable
from pathlib import Path

from headcount.base.files import write_text
from headcount.base.templates import fill_page
from headcount.findings.kinds import explain_kinds
from headcount.findings.report.study import (
    choosing,
    fresh,
    functions,
    little_text,
    locking,
    real_text,
)
from headcount.findings.report.study.design import (
    design_words,
    kept_words,
    paper_words,
    reached_words,
)
from headcount.findings.report.study.foretelling import LATER
from headcount.findings.report.study.hours import hours_of
from headcount.findings.report.study.intervals import capital
from headcount.findings.report.study.kept import Kept
from headcount.findings.report.study.paper_claims import BESIDE

POINTS = {
    "locking": ("which heads Impt-N locks in", locking.EXPERIMENT, locking.locking),
    "fresh": ("locked heads on fresh seeds", fresh.EXPERIMENT, fresh.fresh),
    "deep": ("locked heads in the paper's number of layers", fresh.DEEP, fresh.deep),
    "choosing": ("what else may be masked", choosing.EXPERIMENT, choosing.choosing),
    "little_text": ("when masking helps BLEU", little_text.EXPERIMENT, little_text.little_text),
    "longer": ("masks with dropout, until dev loss turns", little_text.LONG, little_text.longer),
    "functions": ("heads with a function", functions.EXPERIMENT, functions.functions),
    "real_text": ("Multi30k, English to German", real_text.EXPERIMENT, real_text.real_text),
}
"""The points by their names in the template: in words, the experiment, and its section."""

_TEMPLATE = Path(__file__).with_suffix(".md")


def write_study(folder: Path, out: Path, config: Path) -> None:
    """Write the page `out` from a folder of kept results, and its pictures beside it.

    `config` is the folder of the experiments' settings. A point whose experiment has no tables is
    named as not finished. Raises UserError where an experiment lacks a table that the page is made
    of.
    """
    kept = Kept(folder, out, config)
    sections = {name: section(kept) for name, (_, _, section) in POINTS.items()}
    told = [section["experiments"] for section in sections.values() if section]
    experiments = list(dict.fromkeys(name for names in told for name in names))
    points = [(words, experiment) for words, experiment, _ in POINTS.values()]
    every = [experiment for _, experiment, _ in POINTS.values()]
    every += [LATER, locking.SLOW, *BESIDE]
    begun = [name for name in every if kept.begun(name)]
    about = {
        "points": list(zip(points, sections.values(), strict=True)),
        "hours": hours_of(kept, experiments),
        "capital": capital,
        "kinds": explain_kinds().rstrip("."),
        "paper": paper_words(kept),
        "designs": {name: design_words(kept, name) for name in begun},
        "so_far": _before_others(kept, kept_words, every, begun),
        "reached": _before_others(kept, reached_words, every, begun),
    }
    write_text(out, fill_page(_TEMPLATE, sections | about))


def _before_others(
    kept: Kept, words: Callable[[Kept, str], str], every: list[str], begun: list[str]
) -> dict[str, str]:
    """A sentence on each experiment, with a blank for the one after it; empty if none is kept."""
    return {name: f"{words(kept, name)} ".lstrip() if name in begun else "" for name in every}
