"""Seconds and memory of the jobs of each rule, from Snakemake's benchmarks."""

from pathlib import Path
from typing import Any

import pandas as pd

from headcount.base.errors import UserError
from headcount.findings import exhibits
from headcount.findings.results import Results
from headcount.findings.tables import Table

TOTAL = "all"
ESTIMATED = "estimated_seconds"
_MEASURED = {"s": "seconds", "cpu_time": "cpu_seconds", "max_rss": "memory_mb"}
_SHOWN = {"longest_seconds": "longest job", "cpu_seconds": "processor time"}
_SHOWN |= {"memory_mb": "memory in MiB", ESTIMATED: "estimated"}
_CAPTION = (
    "What the jobs of each rule took when they last ran here: "
    "seconds of all together and of the longest, processor time of all, the most memory of one."
)
_NOTES = (
    "A job that came with `dvc pull` has not run here and does not count; a training that was "
    "resumed counts from there on. Memory and processor time are sampled, every half second at "
    "first and then every half minute: those of a short job are too low. Estimated: seconds of "
    "all together, by a few seconds of measuring when these settings were first run or estimated "
    "here (workflow/estimate.py).",
)


@exhibits.table("cost", needs=("benchmarks",), uses=("estimate",))
def cost(results: Results) -> Table:
    """Seconds and memory by rule."""
    table = cost_table(results.files("benchmarks"))
    table[ESTIMATED] = _estimated(table["rule"], results.files("estimate"))
    return Table(table, table.rename(columns=_SHOWN), _CAPTION, _NOTES)


def _estimated(rules: pd.Series, files: list[Path]) -> pd.Series:
    """Seconds of these rules by the estimate; an empty cell where there is none of a rule."""
    if not files:
        return pd.Series("", index=rules.index)
    table = pd.read_csv(files[0])
    seconds = (table["rated_seconds"] * table["jobs"]).groupby(table["rule"]).sum()
    known = {**seconds, TOTAL: seconds[seconds.index.isin(rules)].sum()}
    return rules.map(known).astype(object).fillna("")


def cost_table(files: list[Path]) -> pd.DataFrame:
    """What jobs took by rule, the one that took longest first; the last row is of all jobs.

    Files are `<rule>/<job>.tsv`. `seconds` and `cpu_seconds` are sums over jobs, `longest_seconds`
    and `memory_mb` those of the largest; 0 where no job was measured. Raises UserError for a file
    that is no benchmark.
    """
    jobs = pd.DataFrame(map(_read, files), columns=["rule", *_MEASURED.values()])
    by_rule = pd.concat([jobs, jobs.assign(rule=TOTAL)]).groupby("rule")
    table = by_rule.agg(
        jobs=("seconds", "size"),
        seconds=("seconds", "sum"),
        longest_seconds=("seconds", "max"),
        cpu_seconds=("cpu_seconds", "sum"),
        memory_mb=("memory_mb", "max"),
    )
    rules = table.drop(TOTAL, errors="ignore")
    order = rules.sort_values("seconds", ascending=False, kind="stable").index
    return table.reindex([*order, TOTAL], fill_value=0).reset_index()


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
