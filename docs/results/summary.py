"""Compute the numbers of the result pages from the golden copies of the tables.

Run `python docs/results/summary.py` in the project's folder. It reads summary.yaml, which says
where each number comes from, and writes summary.csv.
"""

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from scipy import stats  # noqa: E402

from tests.golden.compare import read_copy  # noqa: E402

_SIGNED = {"BLEU", "nats"}
_BOUNDS = ("value", "low", "high")
_SCALES = {
    "linear": (lambda x: x, float),
    "log": (np.log, np.exp),  # ratios: the mean is geometric
    "fisher": (np.arctanh, np.tanh),  # correlations
}


def summarise() -> pd.DataFrame:
    """Return one row for every entry of summary.yaml."""
    entries = yaml.safe_load((HERE / "summary.yaml").read_text(encoding="utf-8"))
    names = sorted({entry["experiment"] for entry in entries.values()})
    copies = {name: read_copy(name) for name in names}
    return pd.DataFrame([_row(name, entry, copies) for name, entry in entries.items()])


def _row(name: str, entry: dict[str, Any], copies: dict[str, dict[str, bytes]]) -> dict[str, Any]:
    table = entry["table"] if "/" in entry["table"] else f"tables/{entry['table']}"
    content = copies[entry["experiment"]][f"{entry['experiment']}/{table}.csv"]
    rows = pd.read_csv(io.BytesIO(content)).query(entry["where"])
    if rows.empty:
        raise SystemExit(f"summary.yaml: {name}: no row of {table} has {entry['where']}")
    found = {"name": name, "page": entry["page"], "experiment": entry["experiment"]}
    found |= {"table": table, "unit": entry["unit"]} | _estimate(rows, entry)
    return found | {"text": _text(found, entry.get("digits", 2))}


def _estimate(rows: pd.DataFrame, entry: dict[str, Any]) -> dict[str, Any]:
    """Return value, 95 % interval and what it is over."""
    values = rows.eval(entry["value"])
    if entry.get("across") == "rows":
        return {"value": int(values.sum()), "low": None, "high": None, "over": f"{len(rows)} rows"}
    if "interval" in entry:
        (row,) = rows.to_dict("records")
        low, high = (row[column] for column in entry["interval"])
        return {"value": values.item(), "low": low, "high": high, "over": f"{row['seeds']} seeds"}
    to, back = _SCALES[entry.get("scale", "linear")]
    seeds = to(values.groupby(rows["seed"]).agg(entry.get("within", "mean")))
    half = stats.t.ppf(0.975, len(seeds) - 1) * seeds.sem()
    found = (seeds.mean(), seeds.mean() - half, seeds.mean() + half)
    return dict(zip(_BOUNDS, map(back, found), strict=True)) | {"over": f"{len(seeds)} seeds"}


def _text(found: dict[str, Any], digits: int) -> str:
    """Return a number as the pages print it."""
    if found["low"] is None:
        return f"{found['value']} of {found['over'].removesuffix(' rows')}"
    if found["unit"] == "heads":
        return f"{round(found['value'], 1):g}"
    sign = "+" if found["unit"] in _SIGNED else ""
    value, low, high = (
        f"{number:{sign}.{digits}f}".replace("-", "−") for number in map(found.get, _BOUNDS)
    )
    return f"{value} ({low} to {high})"


if __name__ == "__main__":
    summarise().to_csv(HERE / "summary.csv", index=False, lineterminator="\n", float_format="%.10g")
