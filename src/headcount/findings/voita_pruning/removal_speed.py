"""Speed and size of pruned models, from speed.csv; medians over repeats."""

from pathlib import Path

import pandas as pd

from headcount.base.errors import UserError
from headcount.findings import exhibits
from headcount.findings.cells import NONE, mean_count
from headcount.findings.results import Results
from headcount.findings.run_tables import BASE, KEYS, gather
from headcount.findings.scores import Scores
from headcount.findings.tables import Table
from headcount.findings.voita_pruning.measured import describe_pruning, pruned_models

_TIMED = ["model", "heads_left", "parameters", "file_bytes", "phase", "batch_size", "repeat"]
_TIMED += ["sentences", "steps", "seconds"]
_SETUP = ["pair", "seed", "phase", "batch_size"]
COLUMNS = [*KEYS, "how", "scope", "heads_left", "parameters", "file_bytes"]
COLUMNS += ["phase", "batch_size", "repeats", "milliseconds", "low", "high", "steps", "speedup"]

CAPTION = (
    "Speed and size of models whose heads were really removed. Milliseconds per sentence: median "
    "over repeats, in which the models take turns; in brackets the fastest and the slowest repeat. "
    f"Speed-up: median of the {BASE} ÷ median of the model, each by its steps; above 1 is faster, "
    "and a difference within the spread of the repeats is none. Encode: one pass of the encoder "
    "over a batch, with the keys and values that the decoder takes from it, one step a sentence; "
    "decode: beam search of whole sentences, encoder included, after the comma its steps a "
    "sentence, for a damaged model makes other and longer ones. Several seeds: means over seeds."
)


@exhibits.table(
    "voita_speedup", "Speed and size without the heads", needs=("pruned_heads", "pruned_speed")
)
def speedup(results: Results) -> Table:
    """Speed and size of pruned models."""
    table = timed(results)
    return Table(table, speed_summary(table), f"{CAPTION} {describe_pruning(results)}")


def timed(results: Results) -> pd.DataFrame:
    """Speed of every model that was timed; see `speed_table`."""
    return speed_table(results.files("pruned_speed"), pruned_models(results))


def speed_table(files: list[Path], models: pd.DataFrame) -> pd.DataFrame:
    """One model, phase and batch size a row: columns of `COLUMNS`.

    `milliseconds` per sentence, the median over `repeats`, which lie between `low` and `high`;
    `steps` of the search per sentence; `speedup` = the baseline's median ÷ this one, both by their
    steps, so that longer translations do not count as slowness. `how` and `scope` are empty for
    models that were not pruned. Raises UserError where the baseline was not timed beside.
    """
    raw = gather(files, _TIMED).drop(columns="run").rename(columns={"model": "run"})
    raw["milliseconds"] = 1000 * raw["seconds"] / raw["sentences"]
    raw["steps"] = raw["steps"] / raw["sentences"]
    sizes = ["heads_left", "parameters", "file_bytes"]
    of_model = raw.groupby([*_SETUP, "run", *sizes, "steps"], sort=False)["milliseconds"]
    table = of_model.agg(repeats="size", milliseconds="median", low="min", high="max").reset_index()
    table["of_step"] = table["milliseconds"] / table["steps"]
    whole = table.loc[table["run"] == BASE, [*_SETUP, "of_step"]]
    table = table.merge(whole, "left", _SETUP, suffixes=("", "_whole"))
    lacking = table[table["of_step_whole"].isna()]
    if len(lacking):
        pair, seed, phase, size = lacking[_SETUP].iloc[0]
        raise UserError(
            f"speed.csv of {pair}, seed {seed}: expected the {BASE} timed beside the pruned models "
            f"({phase}, batch size {size}), found none"
        )
    table["speedup"] = table["of_step_whole"] / table["of_step"]
    table = table.merge(models[[*KEYS, "how", "scope"]], "left", KEYS)
    return table[COLUMNS].fillna({"how": "", "scope": ""})


def speed_with_bleu(table: pd.DataFrame, scores: Scores) -> pd.DataFrame:
    """The table with `test_set` and `bleu`: each model's BLEU on its first test set."""
    firsts = [scores.of(key)[0] for key in table[KEYS].itertuples(index=False, name=None)]
    return table.assign(test_set=[row.test for row in firsts], bleu=[row.bleu for row in firsts])


def speed_summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per model, columns for phases and batch sizes."""
    rows = []
    for (pair, run), found in table.groupby(["pair", "run"], sort=False):
        one = found.drop_duplicates("seed")
        row = {"pair": pair, "run": run, "heads left": mean_count(one["heads_left"])}
        row["parameters"] = f"{one['parameters'].mean():,.0f}"
        row["file, MB"] = f"{one['file_bytes'].mean() / 1e6:.2f}"
        for (phase, size), timed in found.groupby(["phase", "batch_size"], sort=False):
            mean = timed[["milliseconds", "low", "high", "steps", "speedup"]].mean()
            spread = f"{mean['low']:.3g}–{mean['high']:.3g}"
            steps = f", {mean['steps']:.1f} steps" if phase == "decode" else ""
            cell = f"{mean['milliseconds']:.3g} ({spread}){steps}, ×{mean['speedup']:.2f}"
            row[f"{phase}, batch {size}"] = cell
        rows.append(row)
    return pd.DataFrame(rows).fillna(NONE)
