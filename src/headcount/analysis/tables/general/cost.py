"""Seconds and memory of the jobs of every rule, from Snakemake's benchmarks."""

from pathlib import Path

import pandas as pd

from headcount.base.errors import UserError

_MEASURED = {"s": "seconds", "cpu_time": "cpu_seconds", "max_rss": "memory_mb"}


def cost(benchmarks: list[Path]) -> pd.DataFrame:
    """Return sums and maxima over the jobs of every rule, longest first, then `all` jobs."""
    jobs = pd.DataFrame(map(_read, benchmarks), columns=["rule", *_MEASURED.values()])
    rules = jobs.groupby("rule")["seconds"].sum().sort_values(ascending=False, kind="stable").index
    groups = pd.concat([jobs, jobs.assign(rule="all")]).groupby("rule")
    sums = groups[["seconds", "cpu_seconds"]].sum()
    largest = groups[["seconds", "memory_mb"]].max().rename(columns={"seconds": "longest_seconds"})
    table = groups.size().to_frame("jobs").join([sums, largest])
    table = table.reindex([*rules, "all"], fill_value=0)
    columns = ["jobs", "seconds", "longest_seconds", "cpu_seconds", "memory_mb"]
    return table[columns].reset_index()


def _read(path: Path) -> dict[str, str | float]:
    """Return the numbers of one job, 0 where it was too short to be sampled."""
    job = pd.read_csv(path, sep="\t", na_values=["-"]).rename(columns=_MEASURED)
    if len(job) != 1 or not set(_MEASURED.values()) <= set(job):
        expected = f"expected one row with {', '.join(_MEASURED)} of a Snakemake benchmark"
        raise UserError(f"{path}: {expected}, found another table; delete it")
    return {"rule": path.parent.name} | job.fillna(0).iloc[0].to_dict()
