"""Seconds and memory of the jobs of every rule, from Snakemake's benchmarks."""

from pathlib import Path

import pandas as pd

from headcount.analysis.frames import Data
from headcount.base.errors import UserError

TOTAL = "all"
_MEASURED = {"s": "seconds", "cpu_time": "cpu_seconds", "max_rss": "memory_mb"}


def cost(benchmarks: list[Path], data: Data) -> pd.DataFrame:
    """Return sums and maxima over the jobs of every rule, longest first; the last row has all jobs.

    `estimated_seconds` come from `estimate.csv` and are missing without it.
    """
    jobs = pd.DataFrame(map(_read, benchmarks), columns=["rule", *_MEASURED.values()])
    table = (
        pd.concat([jobs, jobs.assign(rule=TOTAL)])
        .groupby("rule")
        .agg(
            jobs=("seconds", "size"),
            seconds=("seconds", "sum"),
            longest_seconds=("seconds", "max"),
            cpu_seconds=("cpu_seconds", "sum"),
            memory_mb=("memory_mb", "max"),
        )
    )
    rules = table.drop(TOTAL, errors="ignore").sort_values(
        "seconds", ascending=False, kind="stable"
    )
    table = table.reindex([*rules.index, TOTAL], fill_value=0)
    return table.assign(
        estimated_seconds=_estimated(table.index, data.files("estimate"))
    ).reset_index()


def _estimated(rules: pd.Index, files: list[Path]) -> pd.Series:
    """Return the estimated seconds of these rules; missing where a rule has no estimate."""
    jobs = pd.concat([pd.read_csv(path) for path in files]) if files else None
    if jobs is None:
        return pd.Series(index=rules, dtype=float)
    seconds = (jobs["rated_seconds"] * jobs["jobs"]).groupby(jobs["rule"]).sum()
    seconds[TOTAL] = seconds[seconds.index.isin(rules)].sum()
    return seconds.reindex(rules)


def _read(path: Path) -> dict[str, str | float]:
    """Return the numbers of one job; 0 where it was too short to be sampled."""
    job = pd.read_csv(path, sep="\t", na_values=["-"])
    missing = [name for name in _MEASURED if name not in job.columns]
    if missing or len(job) != 1:
        raise UserError(
            f"{path}: expected one row with the columns {', '.join(_MEASURED)} of a Snakemake "
            f"benchmark, found {len(job)} with {', '.join(job.columns)}; delete it"
        )
    return {"rule": path.parent.name} | job.rename(columns=_MEASURED).fillna(0).iloc[0].to_dict()
