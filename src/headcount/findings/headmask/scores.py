"""HeadMask's Tables 2, 3 and 4: BLEU of every training method against the baseline."""

from collections.abc import Sequence
from functools import cache

import pandas as pd

from headcount.base.settings.names import parse_pair
from headcount.findings import exhibits
from headcount.findings.masked_training import warn_of_collapse
from headcount.findings.published import headmask
from headcount.findings.results import BASE, Results
from headcount.findings.scores import Scores, describe_search
from headcount.findings.setting import OVER_SEEDS, describe_setting, of_one_training
from headcount.findings.significance import paired_t
from headcount.findings.tables import NONE, Table, interval, p_value

COLUMNS = ["pair", "run", "seed", "test_set", "statistic", "value", "source", "signature"]
_TASK = ["pair", "test_set"]
_RULES = {
    2: "the experiment's first pair on each of its test sets",
    3: "all pairs into English",
    4: "all pairs into other languages",
}
_MISPRINT = {2: " It prints +0.28 for impt-18 on MT04; its two scores differ by 0.32."}


@exhibits.table("headmask_table2", needs=("scored", "masks"), uses=("curves",))
def table2(results: Results) -> Table:
    """Table 2: BLEU, the first pair."""
    return _scores(results, 2)


@exhibits.table("headmask_table3", needs=("scored", "masks"), uses=("curves",))
def table3(results: Results) -> Table:
    """Table 3: BLEU into English."""
    return _scores(results, 3)


@exhibits.table("headmask_table4", needs=("scored", "masks"), uses=("curves",))
def table4(results: Results) -> Table:
    """Table 4: BLEU into other languages."""
    return _scores(results, 4)


def _scores(results: Results, number: int) -> Table:
    tidy = score_table(number, _compared(results))
    caption = f"BLEU by training method: {_RULES[number]}. Differences are to the {BASE}."
    warnings = warn_of_collapse(results, set(tidy.loc[tidy["source"] == "ours", "pair"]))
    return Table(tidy, score_summary(tidy), caption, score_notes(number, tidy, results), warnings)


@cache
def _compared(results: Results) -> pd.DataFrame:
    kinds = ("scores", "translations", "references")
    return compare_scores(Scores(*map(results.files, kinds)))


def compare_scores(scores: Scores) -> pd.DataFrame:
    """BLEU of every run and its difference to the baseline of the same seed: columns of `COLUMNS`.

    Statistics of a seed: `bleu`; beside a baseline `delta` (run − baseline, points), and by paired
    bootstrap `low_bootstrap`, `high_bootstrap` (95 % interval) and `p_bootstrap`. Over seeds, with
    an empty seed: `bleu_mean`, `delta_mean` and, from two seeds on, `bleu_sd`, `delta_sd` (ddof 1),
    `delta_low`, `delta_high` (95 % t interval) and `p_t` (paired t-test).
    """
    rows = []
    for key in scores.keys:
        baseline = (key[0], BASE, key[2])
        for test, bleu, signature in scores.of(key):
            rows.append((*key, test, "bleu", bleu, "ours", signature))
            if key == baseline or not scores.knows(baseline, test):
                continue
            delta = bleu - scores.bleu(baseline, test)
            found = scores.compare(baseline, [key], test)[key]
            rows.append((*key, test, "delta", delta, "ours", signature))
            tested = {"low": found.low, "high": found.high, "p": found.p_value}
            for name, value in tested.items():
                rows.append((*key, test, f"{name}_bootstrap", value, "ours", found.signature))
    table = pd.DataFrame(rows, columns=COLUMNS).astype({"seed": object})
    return pd.concat([table, _over_seeds(table)], ignore_index=True)


def _over_seeds(table: pd.DataFrame) -> pd.DataFrame:
    rows = []
    groups = [*_TASK, "run", "statistic", "signature"]
    kept = table[table["statistic"].isin(["bleu", "delta"])].groupby(groups, sort=False)["value"]
    for (pair, test, run, statistic, signature), of_seeds in kept:
        values = of_seeds.to_numpy()
        found = {f"{statistic}_mean": values.mean()}
        if len(values) > 1:
            found[f"{statistic}_sd"] = values.std(ddof=1)
        if len(values) > 1 and statistic == "delta":
            tested = paired_t(values)
            found |= {"delta_low": tested.low, "delta_high": tested.high, "p_t": tested.p}
        for name, value in found.items():
            rows.append((pair, run, "", test, name, value, "ours", signature))
    return pd.DataFrame(rows, columns=COLUMNS)


def score_table(number: int, ours: pd.DataFrame) -> pd.DataFrame:
    """The scores that Table `number` (2 to 4) shows; each of ours is followed by its like.

    `ours` comes from `compare_scores`. The first pair stands in Table 2 and in that of its
    direction, so that a pair and its reverse are found in the same way.
    """
    pairs = ours["pair"].unique()
    english = [parse_pair(pair).tgt == "en" for pair in pairs]
    members = pairs[:1] if number == 2 else pairs[[into == (number == 3) for into in english]]
    chosen = ours[ours["pair"].isin(members)]
    order = _tasks(chosen)
    both = pd.concat([chosen.astype(object), _printed(number, order)], ignore_index=True)

    def place(task: tuple[str, str]) -> int:
        like = [task] if task in order else [each for each in order if _same_task(task, each)]
        return order.index(like[0]) if like else len(order)

    places = pd.Series(map(place, zip(both["pair"], both["test_set"], strict=True)))
    return both.iloc[places.sort_values(kind="stable").index].reset_index(drop=True)


def _printed(number: int, tasks: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Printed BLEU in columns of `COLUMNS`: Table `number`, and what matches one of our tasks.

    Differences are computed from the printed scores. `signature` says what the paper tells of its
    metric.
    """
    tables = pd.concat(headmask.table(table).assign(table=table) for table in _RULES)
    rows = []
    for (table, pair, test), of_test in tables.groupby(["table", *_TASK], sort=False):
        if table != number and not any(_same_task((pair, test), task) for task in tasks):
            continue
        scores = of_test.set_index("run")["value"]
        for run, score in scores.items():
            found = {"bleu": score}
            if run != BASE:
                found["delta"] = round(score - scores[BASE], 2)
            for name, value in found.items():
                rows.append((pair, run, "", test, name, value, "paper", headmask.METRIC))
    return pd.DataFrame(rows, columns=COLUMNS).astype(object)


def _tasks(table: pd.DataFrame) -> list[tuple[str, str]]:
    """(pair, test set) of a table, each once, in its order."""
    return list(dict.fromkeys(zip(table["pair"], table["test_set"], strict=True)))


def _same_task(printed: Sequence[str], ours: Sequence[str]) -> bool:
    """Whether languages and test set are the same, whatever the corpus is called."""
    languages = [parse_pair(pair)[1:] for pair, _ in (printed, ours)]
    return languages[0] == languages[1] and printed[1].lower() == ours[1].lower()


def score_notes(number: int, table: pd.DataFrame, results: Results) -> tuple[str, ...]:
    """What the columns of Table `number` mean, by which tests, and of whom."""
    ours = table[(table["source"] == "ours") & (table["seed"] != "")]
    known = len(ours) > 0
    runs = [run for run in ours["run"].unique() if run != BASE]
    others = [run for run in runs if results.runs[run].dropout is not None]
    setting = describe_setting(results, ours) if known else ("This experiment has no such pair.",)
    return (
        f"No run is named {BASE}." if known and BASE not in set(ours["run"]) else "",
        "Table 2 has the first pair; Tables 3 and 4 have all pairs, by direction; so the first "
        "pair stands twice.",
        f"Differences are to the {BASE} of the same seed; ± is the standard deviation over seeds; "
        "p by paired bootstrap (sacreBLEU's, which is nearly one-sided), for each seed in turn, "
        "and, with several seeds, by paired t-test. 95 % interval: of several seeds the t interval "
        "of the mean difference, of one by paired bootstrap.",
        f"Of another dropout than the {BASE}, to which a part of the difference is due: "
        f"{', '.join(others)}."
        if others
        else "",
        of_one_training("test sentences"),
        OVER_SEEDS,
        f"Rows whose source is paper: {headmask.SOURCE}, Table {number}, and any score of the "
        f"same languages and test set.{_MISPRINT.get(number, '')}",
        headmask.BESIDE_OURS,
        *setting,
        f"Signatures: {'; '.join(ours['signature'].unique())}." if known else "",
        results.read(describe_search, "scores"),
    )


def score_summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per pair, test set, run and source."""
    rows = []
    names = [*_TASK, "run", "source"]
    for key, of_run in table.groupby(names, sort=False):
        values = of_run.groupby("statistic")["value"].agg(list)
        rows.append(dict(zip(names, key, strict=True)) | _cells(values))
    shown = pd.DataFrame(rows).rename(columns={"test_set": "test set"})
    if (shown["p (t-test)"] == NONE).all():  # one seed
        shown = shown.drop(columns="p (t-test)")
    return shown


def _cells(values: pd.Series) -> dict[str, str]:
    """Cells of one run, from lists by statistic; a dash where one does not apply."""
    p = values.get("p_t")
    sides = ("delta_low", "delta_high") if p else ("low_bootstrap", "high_bootstrap")
    return {
        "BLEU": _mean(values, "bleu", ""),
        "difference": _mean(values, "delta", "+"),
        "p (bootstrap)": ", ".join(map(p_value, values.get("p_bootstrap", []))) or NONE,
        "95 % interval": interval(*(values.get(side, []) for side in sides)),
        "p (t-test)": p_value(p[0]) if p else NONE,
    }


def _mean(values: pd.Series, name: str, sign: str) -> str:
    """Mean ± deviation over seeds, or a printed number."""
    found = values.get(f"{name}_mean") or values.get(name)
    if not found:
        return NONE
    deviation = values.get(f"{name}_sd")
    return f"{found[0]:{sign}z.2f}" + (f" ± {deviation[0]:.2f}" if deviation else "")
