"""Seconds and memory of the jobs of each rule, from Snakemake's benchmarks."""

from pathlib import Path
from typing import Any

import pandas as pd

from headcount.base.errors import UserError
from headcount.findings import exhibits
from headcount.findings.results import Results
from headcount.findings.tables import Table

TOTAL = "all"
COLUMNS = ["rule", "jobs", "seconds", "longest_seconds", "cpu_seconds", "memory_mb"]

_MEASURED = {"s": "seconds", "cpu_time": "cpu_seconds", "max_rss": "memory_mb"}
_CAPTION = (
    "What the jobs of each rule took when they last ran in this folder: seconds of all together "
    "and of the longest, processor time of all, the most memory of one. A job that came with `dvc "
    "pull` has not run here and does not count; a training that was resumed counts from there on. "
    "Memory and processor time are sampled, every half second at first and then every half "
    "minute: those of a short job are too low."
)


@exhibits.table("cost", needs=("benchmarks",))
def cost(results: Results) -> Table:
    """Seconds and memory by rule."""
    table = cost_table(results.files("benchmarks"))
    shown = table.rename(columns={"longest_seconds": "longest job", "memory_mb": "memory in MB"})
    return Table(table, shown.rename(columns={"cpu_seconds": "processor time"}), _CAPTION)


def cost_table(files: list[Path]) -> pd.DataFrame:
    """`COLUMNS` by rule, the one that took longest first; the last row is of all jobs.

    Files are `<rule>/<job>.tsv`. `seconds` and `cpu_seconds` are sums over jobs, `longest_seconds`
    and `memory_mb` those of the largest; 0 where no job was measured. Raises UserError for a file
    that is no benchmark.
    """
    jobs = pd.DataFrame([_read(path) for path in files], columns=["rule", *_MEASURED.values()])
    rules = [_row(rule, found) for rule, found in jobs.groupby("rule", sort=False)]
    rules.sort(key=lambda row: (-row["seconds"], row["rule"]))
    return pd.DataFrame([*rules, _row(TOTAL, jobs)], columns=COLUMNS)


def _row(rule: str, jobs: pd.DataFrame) -> dict[str, Any]:
    return {
        "rule": rule,
        "jobs": len(jobs),
        "seconds": float(jobs["seconds"].sum()),
        "longest_seconds": float(jobs["seconds"].max()) if len(jobs) else 0.0,
        "cpu_seconds": float(jobs["cpu_seconds"].sum()),
        "memory_mb": float(jobs["memory_mb"].max()) if len(jobs) else 0.0,
    }


def _read(path: Path) -> dict[str, Any]:
    """One job; what was too short to be sampled is 0."""
    found = pd.read_csv(path, sep="\t", na_values=["-"])
    missing = [name for name in _MEASURED if name not in found.columns]
    if missing or len(found) != 1:
        raise UserError(
            f"{path}: expected one row with the columns {', '.join(_MEASURED)} of a Snakemake "
            f"benchmark, found {len(found)} with {', '.join(found.columns)}; delete it"
        )
    measured = found.rename(columns=_MEASURED).fillna(0).iloc[0]
    return {"rule": path.parent.name} | {name: measured[name] for name in _MEASURED.values()}
