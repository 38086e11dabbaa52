"""Point 1 where no explanation was found: on fresh seeds, and in the paper's number of layers."""

from typing import Any

from headcount.findings.report.study.collapsed import collapsed_words, how_many_collapsed
from headcount.findings.report.study.foretelling import foretelling
from headcount.findings.report.study.kept import Kept
from headcount.findings.report.study.locking import (
    harm_words,
    locked_rows,
    locking_words,
    place_words,
    short_locking,
)

EXPERIMENT = "collapse_fresh"
DEEP = "collapse_deep"


def fresh(kept: Kept) -> dict[str, Any]:
    """What the page says of trainings like those of `collapse` with seeds of their own.

    Nothing while no tables are kept.
    """
    return _tested(kept, EXPERIMENT, "", []) if kept.begun(EXPERIMENT) else {}


def deep(kept: Kept) -> dict[str, Any]:
    """What the page says of trainings with as many layers and heads as the paper's.

    Nothing while no tables are kept.
    """
    if not kept.begun(DEEP):
        return {}
    first = [locking_words(kept, DEEP), harm_words(kept, DEEP)]
    return _tested(kept, DEEP, short_locking(kept, DEEP), first)


def _tested(kept: Kept, experiment: str, short: str, first: list[str]) -> dict[str, Any]:
    """What the page says of trainings that test what was found on others.

    `short` begins the short answer, sentences of `first` the long one.
    """
    table = kept.table(experiment, "headmask_locked")
    over = table[table["seed"].isna() & (table["n"] > 0) & (table["held"] == 0)]
    foretold = foretelling(kept, experiment, over["run"].tolist())
    in_short = [short, foretold.get("short"), how_many_collapsed(kept, experiment)]
    answer = [*first, place_words(over), *foretold.get("answer", [])]
    trained = table.dropna(subset="seed")
    return {
        "experiments": [experiment],
        "trainings": len(trained),
        "seeds": ", ".join(map(str, sorted(trained["seed"].astype(int).unique()))),
        "rows": locked_rows(kept, experiment),
        "foretold": foretold,
        "short": [" ".join(filter(None, in_short))],
        "answer": list(filter(None, [*answer, collapsed_words(kept, experiment)])),
    }
