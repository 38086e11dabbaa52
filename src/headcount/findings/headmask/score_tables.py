"""Which scores stand in HeadMask's Tables 2, 3 and 4, and how people read them."""

from functools import cache

import pandas as pd

from headcount.base.settings.names import parse_pair
from headcount.findings import exhibits
from headcount.findings.cells import NONE, p_value
from headcount.findings.headmask.scores import (
    compare_scores,
    keys,
    paper_scores,
    same_task,
)
from headcount.findings.published import headmask
from headcount.findings.published.numbers import beside_ours
from headcount.findings.results import Results
from headcount.findings.run_tables import BASE
from headcount.findings.scores import Scores, describe_search
from headcount.findings.setting import OVER_SEEDS, describe_setting, of_one_training
from headcount.findings.tables import Table

_RULES = {
    2: "the experiment's first pair on each of its test sets",
    3: "all pairs into English",
    4: "all pairs into other languages",
}
_MISPRINT = {2: " It prints +0.28 for impt-18 on MT04; its two scores differ by 0.32."}
_ROW = ["pair", "test_set", "run", "source"]


@exhibits.table("headmask_table2", "Table 2: BLEU, the first pair", needs=("scored",))
def table2(results: Results) -> Table:
    """BLEU of the first pair by run."""
    return _scores(results, 2)


@exhibits.table("headmask_table3", "Table 3: BLEU into English", needs=("scored",))
def table3(results: Results) -> Table:
    """BLEU of pairs into English by run."""
    return _scores(results, 3)


@exhibits.table("headmask_table4", "Table 4: BLEU into other languages", needs=("scored",))
def table4(results: Results) -> Table:
    """BLEU of pairs into other languages by run."""
    return _scores(results, 4)


def _scores(results: Results, number: int) -> Table:
    tidy = score_table(number, _compared(results))
    search = results.read(describe_search, "scores")
    return Table(tidy, score_summary(tidy), f"{score_caption(number, tidy, results)} {search}")


@cache
def _compared(results: Results) -> pd.DataFrame:
    kinds = ("scores", "translations", "references")
    return compare_scores(Scores(*map(results.files, kinds)))


def score_table(number: int, ours: pd.DataFrame) -> pd.DataFrame:
    """The scores that Table `number` (2 to 4) shows; each of ours is followed by its like.

    `ours` comes from `compare_scores`. The first pair stands in Table 2 and in that of its
    direction, so that a pair and its reverse are found in the same way.
    """
    chosen = ours[ours["pair"].isin(_members(number, list(ours["pair"].unique())))]
    printed = paper_scores(number, chosen)
    order = keys(chosen)
    places = {
        key: next((place for place, row in enumerate(order) if same_task(key, row)), len(order))
        for key in keys(printed)
    } | {key: place for place, key in enumerate(order)}
    both = pd.concat([chosen.astype(object), printed.astype(object)], ignore_index=True)
    ranks = [places[key] for key in zip(both["pair"], both["test_set"], strict=True)]
    return both.iloc[pd.Series(ranks).sort_values(kind="stable").index].reset_index(drop=True)


def _members(number: int, pairs: list[str]) -> list[str]:
    if number == 2:
        return pairs[:1]
    return [pair for pair in pairs if (parse_pair(pair).tgt == "en") == (number == 3)]


def score_caption(number: int, table: pd.DataFrame, results: Results) -> str:
    """What Table `number` shows, of whom, and by which tests."""
    ours = table[(table["source"] == "ours") & (table["seed"] != "")]
    setting = describe_setting(results, ours) if len(ours) else "This experiment has no such pair."
    alone = "" if BASE in set(ours["run"]) or ours.empty else f" No run is named {BASE}."
    signatures = "; ".join(ours["signature"].unique())
    return (
        f"BLEU by training method: {_RULES[number]} (Table 2: the first pair; Tables 3 and 4: all "
        "pairs, by direction; so the first pair stands twice). Differences are to the "
        f"{BASE} of the same seed; ± is the standard deviation over seeds; p by paired bootstrap "
        "(sacreBLEU's, which is nearly one-sided), for each seed in turn, and, with several seeds, "
        "by paired t-test, with the 95 % t interval of the mean difference. "
        f"{of_one_training('test sentences')} {OVER_SEEDS} "
        f"Rows whose source is paper: {headmask.source()}, Table "
        f"{number}, and any score of the same languages and test set.{_MISPRINT.get(number, '')} "
        f"{beside_ours(headmask.metric())}"
        f"{alone} {setting}" + (f" Signatures: {signatures}." if len(ours) else "")
    )


def score_summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per pair, test set, run and source."""
    rows = []
    for names, of_run in table.groupby(_ROW, sort=False):
        values = {
            name: cells.to_list()
            for name, cells in of_run.groupby("statistic", sort=False)["value"]
        }
        rows.append(dict(zip(_ROW, names, strict=True)) | _cells(values))
    shown = pd.DataFrame(rows).rename(columns={"test_set": "test set"})
    if (shown["p (t-test)"] == NONE).all():  # one seed
        shown = shown.drop(columns=["95 % interval", "p (t-test)"])
    return shown


def _cells(values: dict[str, list[float]]) -> dict[str, str]:
    """Cells of one run; a dash where a statistic does not apply."""
    low, high, p = (values.get(name) for name in ("delta_low", "delta_high", "p_t"))
    return {
        "BLEU": _mean(values, "bleu", ""),
        "difference": _mean(values, "delta", "+"),
        "p (bootstrap)": ", ".join(map(p_value, values.get("p_bootstrap", []))) or NONE,
        "95 % interval": f"{low[0]:+z.2f} to {high[0]:+z.2f}" if low else NONE,
        "p (t-test)": p_value(p[0]) if p else NONE,
    }


def _mean(values: dict[str, list[float]], name: str, sign: str) -> str:
    """Mean ± deviation over seeds, or a printed number."""
    found = values.get(f"{name}_mean") or values.get(name)
    if not found:
        return NONE
    deviation = values.get(f"{name}_sd")
    return f"{found[0]:{sign}z.2f}" + (f" ± {deviation[0]:.2f}" if deviation else "")
