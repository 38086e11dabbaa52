"""What pruned models cost, by run."""

from collections.abc import Iterable

import pandas as pd

from headcount.findings.report.study.intervals import mean_of, with_interval
from headcount.findings.report.study.kept import Kept

_TABLE = "voita_pruning"


def pruned_rows(kept: Kept, experiments: Iterable[str]) -> list[dict[str, str]]:
    """Heads left and the BLEU change to the control of each pruned run that has fewer heads.

    Means over trainings, BLEU of means over test sets, with t intervals. Nothing of an experiment
    without the table.
    """
    return [
        _row(experiment, run, rows)
        for experiment in experiments
        if kept.has(experiment, _TABLE)
        for run, rows in kept.table(experiment, _TABLE).groupby("run", sort=False)
        if (rows["lambda"] > 0).all()
    ]


def _row(experiment: str, run: str, rows: pd.DataFrame) -> dict[str, str]:
    by_test = rows.pivot_table("delta", "seed", ["pair", "test_set"])
    deltas = by_test.dropna(axis=1).mean(axis=1)  # of the test sets that every seed has
    left = rows.drop_duplicates("seed")
    return {
        "experiment": experiment,
        "run": run,
        "left": f"{left['scope_left'].mean():.1f} of {left['scope_heads'].iloc[0]}",
        "seeds": str(len(deltas)),
        "change": with_interval(mean_of(deltas), 2),
    }
