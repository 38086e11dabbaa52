"""HeadMask's Tables 2–4: BLEU of every training method against the baseline."""

from collections.abc import Sequence

import pandas as pd

from headcount.base.settings.names import parse_pair
from headcount.findings.published import headmask
from headcount.findings.run_tables import BASE
from headcount.findings.scores import Scores
from headcount.findings.significance import paired_t

COLUMNS = ["pair", "run", "seed", "test_set", "statistic", "value", "source", "signature"]
_GROUP = ["pair", "test_set", "run"]


def compare_scores(scores: Scores) -> pd.DataFrame:
    """BLEU of every run and its difference to the baseline of the same seed: columns of `COLUMNS`.

    Statistics of a seed: `bleu`; beside a baseline `delta` (run − baseline, points) and
    `p_bootstrap` (paired bootstrap). Over seeds, with an empty seed: `bleu_mean`, `delta_mean`
    and, from two seeds on, `bleu_sd`, `delta_sd` (ddof 1), `delta_low`, `delta_high` (95 % t
    interval) and `p_t` (paired t-test).
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
            rows.append((*key, test, "p_bootstrap", found.p_value, "ours", found.signature))
    table = pd.DataFrame(rows, columns=COLUMNS).astype({"seed": object})
    return pd.concat([table, _over_seeds(table)], ignore_index=True)


def _over_seeds(table: pd.DataFrame) -> pd.DataFrame:
    rows = []
    kept = table[table["statistic"].isin(["bleu", "delta"])]
    for (*group, statistic, signature), of_group in kept.groupby(
        [*_GROUP, "statistic", "signature"], sort=False
    ):
        pair, test, run = group
        for name, value in _summaries(statistic, of_group["value"].to_numpy()):
            rows.append((pair, run, "", test, name, value, "ours", signature))
    return pd.DataFrame(rows, columns=COLUMNS)


def _summaries(statistic: str, values) -> list[tuple[str, float]]:
    found = [(f"{statistic}_mean", float(values.mean()))]
    if len(values) > 1:
        found.append((f"{statistic}_sd", float(values.std(ddof=1))))
        if statistic == "delta":
            test = paired_t(values)
            found += [("delta_low", test.low), ("delta_high", test.high), ("p_t", test.p)]
    return found


def paper_scores(number: int, ours: pd.DataFrame) -> pd.DataFrame:
    """Printed BLEU beside ours, in the same columns: Table `number`, and whatever matches ours.

    Differences are computed from the printed scores. `signature` says what the paper tells of its
    metric.
    """
    tables = [headmask.table(table).assign(table=table) for table in (2, 3, 4)]
    rows, metric = [], headmask.metric()
    groups = ["table", "pair", "test_set"]
    for (table, *task), of_test in pd.concat(tables).groupby(groups, sort=False):
        if table != number and not any(same_task(task, measured) for measured in keys(ours)):
            continue
        scores = of_test.set_index("run")["value"]
        for run, score in scores.items():
            rows.append((task[0], run, "", task[1], "bleu", score, "paper", metric))
            if run != BASE:
                delta = round(score - scores[BASE], 2)
                rows.append((task[0], run, "", task[1], "delta", delta, "paper", metric))
    return pd.DataFrame(rows, columns=COLUMNS)


def keys(table: pd.DataFrame) -> list[tuple[str, str]]:
    """(pair, test set) of a table, each once, in its order."""
    return list(dict.fromkeys(zip(table["pair"], table["test_set"], strict=True)))


def same_task(printed: Sequence[str], ours: Sequence[str]) -> bool:
    """Whether languages and test set are the same, whatever the corpus is called."""
    languages = [parse_pair(pair)[1:] for pair, _ in (printed, ours)]
    return languages[0] == languages[1] and printed[1].lower() == ours[1].lower()
