"""Data sets and scores of training methods (HeadMask, tables 1 to 4)."""

from pathlib import Path

import numpy as np
import pandas as pd

from headcount.analysis.frames import BASE, FrameOf, with_paper
from headcount.analysis.inputs import BLEU
from headcount.analysis.published import headmask
from headcount.analysis.scores import main_metric, t_tests, with_baseline
from headcount.base.files import read_json
from headcount.base.settings.section import parse_pair

COLUMNS = ["pair", "run", "seed", "test_set", "statistic", "value", "source", "signature"]
_TESTED = {"delta_low": "low_bootstrap", "delta_high": "high_bootstrap", "p": "p_bootstrap"}
_MEANS = {"delta": "delta_mean", "delta_sd": "delta_sd"}
_MEANS |= {"t_low": "delta_low", "t_high": "delta_high", "t_p": "p_t"}


def data_sets(counts: list[Path]) -> pd.DataFrame:
    """Return the sentence pairs of every split, ours and then the paper's."""
    rows = []
    for path in counts:
        role = path.stem if path.stem in ("train", "dev") else "test"
        rows.append((path.parent.name, path.stem, role, read_json(path)["pairs_kept"]))
    printed = []
    for row in headmask.table("table1").itertuples():
        printed.append((row.pair, row.split, "train", row.value))
        for role in ("dev", "test"):
            printed += [(row.pair, split, role, np.nan) for split in getattr(row, role).split()]
    columns = ["pair", "split", "role", "sentences"]
    return with_paper(*(pd.DataFrame(part, columns=columns) for part in (rows, printed)))


def scores(comparison: FrameOf[with_baseline], number: int) -> pd.DataFrame:
    """Return the statistics of table `number`: every seed, all seeds, then the paper's."""
    first = comparison["pair"] == comparison["pair"].iloc[0]
    english = comparison["pair"].map(lambda pair: parse_pair(pair).tgt == "en")
    chosen = comparison[first if number == 2 else english == (number == 3)]
    metric = main_metric(comparison)
    values = _long(chosen, {"score": metric, "delta": "delta"})
    tests = _long(chosen.assign(signature=chosen["test_signature"]), _TESTED)
    means = {"score": f"{metric}_mean", "score_sd": f"{metric}_sd"} | _MEANS
    means = _long(t_tests(chosen, ["pair", "test_set", "run", "signature"]), means)
    ours = pd.concat([pd.concat([values, tests]).sort_index(kind="stable"), means])
    table = with_paper(ours, _printed(number, chosen), metric).reindex(columns=COLUMNS)
    exact = table["pair"] + "/" + table["test_set"]
    own = exact.isin(exact[table["source"] == "ours"])
    place = exact.where(own, exact.groupby(_task(table)).transform("first"))
    return table.iloc[np.argsort(pd.factorize(place)[0], kind="stable")]


def _long(table: pd.DataFrame, statistics: dict[str, str]) -> pd.DataFrame:
    """Return one known value a row. `statistics` gives columns and their names."""
    fixed, names = table.columns.intersection(COLUMNS), list(statistics.values())
    long = table.rename(columns=statistics).melt(fixed, names, "statistic", ignore_index=False)
    return long.dropna(subset="value").sort_index(kind="stable")


def _printed(number: int, chosen: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of table `number`, and of others with our languages and test sets."""
    tables = [headmask.table(f"table{n}", "score").assign(table=n) for n in (2, 3, 4)]
    printed = pd.concat(tables, ignore_index=True)
    printed = printed[(printed["table"] == number) | _task(printed).isin(_task(chosen))]
    same = ["table", "pair", "test_set"]
    base = printed.loc[printed["run"] == BASE, [*same, "score"]]
    rows = base.rename(columns={"score": "base"}).merge(printed, on=same)
    rows["delta"] = (rows["score"] - rows["base"]).round(2).where(rows["run"] != BASE)
    return _long(rows.assign(signature=headmask.PAPER.metric), {"score": BLEU, "delta": "delta"})


def _task(table: pd.DataFrame) -> pd.Series:
    """Return languages and test set of every row, by which our pairs match the paper's."""
    languages = table["pair"].map(lambda pair: "-".join(parse_pair(pair)[1:]))
    return languages + "/" + table["test_set"].str.lower()
