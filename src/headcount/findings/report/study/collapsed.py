"""Which trainings of an experiment collapsed."""

from headcount.base.settings.short_names import TRAINING_WORDS
from headcount.findings.report.study.kept import Kept

_TABLE = "headmask_collapse"


def collapsed_words(kept: Kept, experiment: str) -> str:
    """How many trainings of each run collapsed, or that none did; empty without their table."""
    if not kept.has(experiment, _TABLE):
        return ""
    told = ", ".join(f"`{run}` {count}" for run, count in _collapsed(kept, experiment).items())
    if not told:
        return "No training collapsed."
    return f"Trainings that collapsed: {told}."


def how_many_collapsed(kept: Kept, experiment: str) -> str:
    """How many of the trainings that mask by importance collapsed: none that masks at random can.

    Empty without their table, or without such a training.
    """
    if not kept.has(experiment, _TABLE):
        return ""
    table = kept.table(experiment, _TABLE)
    rows = table[table["run"].str.startswith(f"{TRAINING_WORDS['importance']}-")]
    count = (rows["collapsed"] == "yes").sum()
    told = f"Of {len(rows)} trainings that mask by importance {count} collapsed."
    return told if len(rows) else ""


def named(kept: Kept, experiment: str, run: str) -> str:
    """A run as code, with how many of its trainings collapsed if any did."""
    counts = _collapsed(kept, experiment) if kept.has(experiment, _TABLE) else {}
    return f"`{run}`" + (f" ({counts[run]} collapsed)" if run in counts else "")


def marked(kept: Kept, experiment: str, rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Rows of the page; `run` says how many of its trainings collapsed, if any did."""
    if not kept.has(experiment, _TABLE):
        return rows
    counts = _collapsed(kept, experiment)
    words = {run: f"{run} ({count} collapsed)" for run, count in counts.items()}
    return [row | {"run": words.get(row["run"], row["run"])} for row in rows]


def _collapsed(kept: Kept, experiment: str) -> dict[str, str]:
    """By run with a training that collapsed, how many of its trainings, such as `1 of 3`."""
    table = kept.table(experiment, _TABLE)
    failed = (table["collapsed"] == "yes").groupby(table["run"], sort=False).agg(["sum", "size"])
    return {run: f"{found} of {count}" for run, found, count in failed.itertuples() if found}
