"""Speed of one model without more and more of its heads, really removed."""

from pathlib import Path

import pandas as pd

from headcount.base.errors import UserError
from headcount.findings.cells import NONE
from headcount.findings.published import michel
from headcount.findings.run_tables import BASE, KEYS, gather

_READ = ["model", "heads_left", "parameters", "phase", "batch_size", "repeat", "sentences"]
_SETUP = [*KEYS, "phase", "batch_size"]
COLUMNS = [*_SETUP, "percent", "heads_left", "parameters", "repeats", "mean", "sd", "speedup"]
COLUMNS += ["source"]

CAPTION = (
    "Sentences per second by share of heads removed (the least important ones) and batch size: "
    "mean ± standard deviation over repeats, in which the models take turns; in brackets the gain "
    "over the model with all heads. Encode: one pass of the encoder over a batch; decode: beam "
    "search of whole sentences, encoder included. A gain within the deviation is none. Rows whose "
    f"source is paper: {michel.source()}, Table 4, BERT."
)


def speed_table(files: list[Path]) -> pd.DataFrame:
    """One share, phase and batch size a row: columns of `COLUMNS`; then the paper's.

    `percent` of heads removed; `mean` and `sd` (ddof 1; empty with one repeat) of sentences per
    second over `repeats`; `speedup`: mean ÷ that with all heads, above 1 is faster. Raises
    UserError where that was not timed.
    """
    raw = gather(files, [*_READ, "seconds"]).rename(columns={"model": "percent"})
    raw["rate"] = raw["sentences"] / raw["seconds"]
    groups = raw.groupby([*_SETUP, "percent", "heads_left", "parameters"], sort=False)["rate"]
    table = groups.agg(repeats="size", mean="mean", sd="std").reset_index()
    table["sd"] = table["sd"].astype(object).where(table["sd"].notna(), "")
    whole = table[table["percent"] == 0].set_index(_SETUP)["mean"]
    setups = list(table[_SETUP].itertuples(index=False, name=None))
    lacking = [setup for setup in setups if setup not in whole.index]
    if lacking:
        raise UserError(
            f"share_speed.csv of {lacking[0]}: expected times of the model with all heads, found "
            "none; run scripts/share_speed.py again"
        )
    table["speedup"] = table["mean"].to_numpy() / whole.loc[setups].to_numpy()
    ours = table.assign(source="ours")[COLUMNS].astype(object)
    return pd.concat([ours, _printed()], ignore_index=True)


def _printed() -> pd.DataFrame:
    table = michel.speed()
    whole = table[table["heads"] == 100].set_index("batch_size")["mean"]
    table["speedup"] = table["mean"] / whole.loc[table["batch_size"]].to_numpy()
    table = table.assign(percent=100 - table["heads"], pair="BERT", run=BASE, seed="")
    table = table.assign(phase="classify", repeats=6, source="paper")
    ordered = table.sort_values(["percent", "batch_size"])
    return ordered.reindex(columns=COLUMNS, fill_value="").astype(object)


def speed_summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per share, columns for phases and batch sizes."""
    rows = []
    keys = [*KEYS, "percent", "source"]
    for (pair, run, seed, percent, source), found in table.groupby(keys, sort=False):
        row = {"pair": pair, "run": run, "seed": str(seed) or NONE, "removed": f"{percent} %"}
        left, size = found.iloc[0][["heads_left", "parameters"]]
        row |= {"heads left": str(left) or NONE, "parameters": f"{size:,}" if size else NONE}
        for cell in found.itertuples():
            gain = "" if percent == 0 else f" ({cell.speedup - 1:+.1%})"
            spread = NONE if cell.sd == "" else f"{cell.sd:.2g}"
            row[f"{cell.phase}, batch {cell.batch_size}"] = f"{cell.mean:.4g} ± {spread}{gain}"
        rows.append(row | {"source": source})
    shown = pd.DataFrame(rows).fillna(NONE)
    return shown[[*(name for name in shown if name != "source"), "source"]]
