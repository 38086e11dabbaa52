"""Speed of one model without more and more of its heads, really removed."""

from pathlib import Path

import pandas as pd

from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.findings.cells import NONE
from headcount.findings.published import michel
from headcount.findings.run_tables import BASE, KEYS, gather

_READ = ["model", "heads_left", "parameters", "phase", "batch_size", "repeat", "sentences"]
_READ += ["steps", "seconds"]
_SETUP = [*KEYS, "phase", "batch_size"]
COLUMNS = [*_SETUP, "percent", "heads_left", "parameters", "repeats", "mean", "sd", "steps"]
COLUMNS += ["speedup", "source"]

CAPTION = (
    "Sentences per second by share of heads removed (the least important ones) and batch size: "
    "mean ± standard deviation over repeats, in which the models take turns; in brackets the gain "
    "over the model with all heads, in steps per second. Encode: one pass of the encoder over a "
    "batch, with the keys and values that the decoder takes from it, one step a sentence; decode: "
    "beam search of whole sentences, encoder included, after the comma its steps a sentence, for a "
    "damaged model makes other and longer ones. A gain within the deviation is none."
)
PRINTED = f"Rows whose source is paper: {michel.source()}, Table 4, BERT."


def describe_timing(files: list[Path]) -> str:
    """On what the times were taken, in a sentence, from the JSON beside each share_speed.csv."""
    found = [read_json(path.with_suffix(".json")) for path in files]
    searches = sorted({fact["beam"] for fact in found})
    machines = sorted({f"{fact['threads']} thread(s) of a {fact['device']}" for fact in found})
    sizes = sorted({str(fact["sentences"]) for fact in found})
    return (
        f"Timed on the first {', '.join(sizes)} sentences of dev, by {', '.join(machines)}, "
        f"beam {', '.join(map(str, searches))}."
    )


def speed_table(files: list[Path]) -> pd.DataFrame:
    """One share, phase and batch size a row: columns of `COLUMNS`; then the paper's.

    `percent` of heads removed; `mean` and `sd` (ddof 1; empty with one repeat) of sentences per
    second over `repeats`; `steps` of the search per sentence; `speedup`: steps per second ÷ those
    with all heads, above 1 is faster. Raises UserError where that was not timed.
    """
    raw = gather(files, _READ).rename(columns={"model": "percent"})
    raw["rate"] = raw["sentences"] / raw["seconds"]
    raw["steps"] = raw["steps"] / raw["sentences"]
    sizes = ["percent", "heads_left", "parameters", "steps"]
    groups = raw.groupby([*_SETUP, *sizes], sort=False)["rate"]
    table = groups.agg(repeats="size", mean="mean", sd="std").reset_index()
    table["sd"] = table["sd"].astype(object).where(table["sd"].notna(), "")
    table["speedup"] = table["mean"] * table["steps"]
    whole = table[table["percent"] == 0].set_index(_SETUP)["speedup"]
    setups = list(table[_SETUP].itertuples(index=False, name=None))
    lacking = [setup for setup in setups if setup not in whole.index]
    if lacking:
        raise UserError(
            f"share_speed.csv of {lacking[0]}: expected times of the model with all heads, found "
            "none; run scripts/share_speed.py again"
        )
    table["speedup"] = table["speedup"].to_numpy() / whole.loc[setups].to_numpy()
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
            steps = f", {cell.steps:.1f} steps" if cell.phase == "decode" else ""
            shown = f"{cell.mean:.4g} ± {spread}{steps}{gain}"
            row[f"{cell.phase}, batch {cell.batch_size}"] = shown
        rows.append(row | {"source": source})
    shown = pd.DataFrame(rows).fillna(NONE)
    return shown[[*(name for name in shown if name != "source"), "source"]]
