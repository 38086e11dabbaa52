"""Data sets and scores of training methods (HeadMask, tables 1 to 4)."""

from pathlib import Path

import numpy as np
import pandas as pd

from headcount.analysis.captions import note, ours
from headcount.analysis.frames import BASE, with_paper
from headcount.analysis.published import headmask
from headcount.analysis.scores import MAIN, Comparison, over_seeds
from headcount.base.files import read_json
from headcount.base.settings.names import parse_pair
from headcount.base.settings.training_runs import RunSettings

COLUMNS = ["pair", "run", "seed", "test_set", "statistic", "value", "source", "signature"]
SCORE_TABLES = (2, 3, 4)
_TASK = ["pair", "test_set"]
_TESTED = {"delta_low": "low_bootstrap", "delta_high": "high_bootstrap", "p": "p_bootstrap"}
_MEANS = {"score": f"{MAIN}_mean", "score_sd": f"{MAIN}_sd", "delta": "delta_mean"}
_MEANS |= {"delta_sd": "delta_sd", "t_low": "delta_low", "t_high": "delta_high", "t_p": "p_t"}


def data_sets(counts: list[Path]) -> pd.DataFrame:
    """Return the sentence pairs of every split, ours and then the paper's."""
    rows = []
    for path in counts:
        role = path.stem if path.stem in ("train", "dev") else "test"
        rows.append((path.parent.name, path.stem, role, read_json(path)["pairs_kept"]))
    printed = []
    for row in headmask.table(1).itertuples():
        printed.append((row.pair, row.split, "train", row.value))
        for role in ("dev", "test"):
            printed += [(row.pair, split, role, np.nan) for split in getattr(row, role).split()]
    columns = ["pair", "split", "role", "sentences"]
    return with_paper(*(pd.DataFrame(part, columns=columns) for part in (rows, printed)))


def scores(comparison: Comparison, number: int) -> pd.DataFrame:
    """Return the scores that table `number` shows, each of ours followed by the paper's.

    A statistic a row. Of a seed: the score and, beside a baseline, `delta` in points with interval
    and p by paired bootstrap. Over seeds, without a seed: means and, from two seeds on, deviations
    (ddof 1), and interval and p of a paired t-test of the deltas.
    """
    pairs = comparison["pair"].unique()
    english = np.array([parse_pair(pair).tgt == "en" for pair in pairs], dtype=bool)
    members = pairs[:1] if number == 2 else pairs[english == (number == 3)]
    chosen = comparison[comparison["pair"].isin(members)]
    tasks = chosen[_TASK].drop_duplicates().reset_index(drop=True)
    table = with_paper(_by_seed(chosen), _printed(number, tasks)).reindex(columns=COLUMNS)
    exact = table[_TASK].merge(tasks.reset_index(), how="left", on=_TASK)["index"]
    places = {task: place for place, task in reversed([*enumerate(_like(tasks))])}
    place = exact.fillna(_like(table).map(places)).fillna(len(tasks))
    return table.iloc[np.argsort(place, kind="stable")]


def _by_seed(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return the statistics of every seed, then those over seeds."""
    seeds = _long(comparison, {"score": MAIN, "delta": "delta"} | _TESTED)
    tested = seeds["statistic"].isin(_TESTED.values())
    seeds["signature"] = seeds["signature"].where(~tested, seeds["test_signature"])
    means = over_seeds(comparison, [*_TASK, "run", "signature"])
    return pd.concat([seeds, _long(means, _MEANS)])


def _long(table: pd.DataFrame, statistics: dict[str, str]) -> pd.DataFrame:
    """Return one known value a row; `statistics` gives columns and their names."""
    fixed = table.columns.intersection([*COLUMNS, "test_signature"])
    wide = table[fixed].join(table[list(statistics)].rename(columns=statistics))
    long = wide.melt(fixed, var_name="statistic", ignore_index=False)
    return long.dropna(subset="value").sort_index(kind="stable")


def _printed(number: int, tasks: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of table `number`, and of others with languages and test set of a task."""
    tables = [headmask.table(table).assign(table=table) for table in SCORE_TABLES]
    printed = pd.concat(tables, ignore_index=True).rename(columns={"value": "score"})
    printed = printed[(printed["table"] == number) | _like(printed).isin(_like(tasks))]
    base = printed.loc[printed["run"] == BASE, ["table", *_TASK, "score"]]
    rows = base.rename(columns={"score": "base"}).merge(printed, on=["table", *_TASK])
    rows["delta"] = (rows["score"] - rows["base"]).round(2).where(rows["run"] != BASE)
    return _long(rows.assign(signature=headmask.METRIC), {"score": MAIN, "delta": "delta"})


def _like(table: pd.DataFrame) -> pd.Series:
    """Return languages and test set of every row, by which our pairs match the paper's."""
    rows = zip(table["pair"], table["test_set"], strict=True)
    names = ["-".join([*parse_pair(pair)[1:], test.lower()]) for pair, test in rows]
    return pd.Series(names, table.index, str)


@note
def other_dropout(frame: pd.DataFrame, trained_runs: dict[str, RunSettings]) -> str:
    """Return a sentence on runs with another dropout than the baseline."""
    runs = [run for run in ours(frame)["run"].unique() if run != BASE]
    others = [run for run in runs if trained_runs[run].dropout is not None]
    text = f"Runs with another dropout than the {BASE}, which causes part of the difference: "
    return f"{text}{', '.join(others)}." if others else ""


@note
def headmask_source() -> str:
    """Return a sentence on the rows of the HeadMask paper."""
    return f"Source paper: {headmask.SOURCE}."


@note
def beside_headmask() -> str:
    """Return a sentence on the metric of the HeadMask paper beside ours."""
    return headmask.BESIDE_OURS
