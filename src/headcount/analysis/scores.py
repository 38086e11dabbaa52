"""Scores of runs on test sets, and how they differ from those of other runs."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd

from headcount.analysis.frames import BASE, RUN, run_of
from headcount.analysis.stats import paired_t
from headcount.base.errors import UserError
from headcount.base.settings.names import parse_pair
from headcount.data.lines import clean_lines
from headcount.scoring.bootstrap import judge_systems, resample_bleu

MAIN = "bleu"
"""The metric of comparisons: that of the paired bootstrap."""

COLUMNS = [*RUN, "test_set", "metric", "score", "signature"]
COLUMNS += ["engine", "beam", "length_penalty", "sentences", "truncated", "capped"]
DIFFERENCE = ["delta", "delta_low", "delta_high", "p", "signature"]
_TASK = ["pair", "test_set"]
System = tuple[str, int]


def score_frame(scores: list[dict[str, Any]]) -> pd.DataFrame:
    """Return one score a row, from the `bleu.json` of runs; columns of `COLUMNS`.

    Raises UserError for a file of an older version, which named no engine.
    """
    rows = []
    for run in scores:
        if not all("engine" in score for score in run["scores"]):
            raise UserError(
                f"bleu.json of {run['run']} ({run['pair']}, seed {run['seed']}): expected the "
                "engine of every score, found none: an older version wrote it; run the experiment "
                "again, which translates and scores its test sets anew"
            )
        rows += [{name: run[name] for name in RUN} | score for score in run["scores"]]
    return pd.DataFrame(rows, columns=COLUMNS)


def main_scores(scores: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the rows of `score_frame` whose metric is `MAIN`, with a new index."""
    return score_frame(scores).query("metric == @MAIN").reset_index(drop=True)


def compare(wanted: pd.DataFrame, translations: list[Path], references: list[Path]) -> pd.DataFrame:
    """Return the rows of `wanted` with the columns `DIFFERENCE`, by paired bootstrap.

    `wanted` has at least pair, run, seed, test_set and `against`: the run of the same pair and seed
    whose score is subtracted. `delta` is in points, its interval is the 95 % interval, and p is
    sacreBLEU's, which is nearly one-sided. All runs of a test set have the same resamples, and are
    resampled once; so ask for all comparisons at once. Raises UserError for a missing text.
    """
    wanted = wanted.reset_index(drop=True)
    texts = {(*run_of(path), path.stem): path for path in translations}
    targets = {(path.parent.name, path.stem): path for path in references}
    tested = [pd.DataFrame(columns=DIFFERENCE)]
    for (pair, test), rows in wanted.groupby(_TASK, sort=False):
        if (pair, test) not in targets:
            raise UserError(f"references: expected {pair}/{test}.tgt, found none")
        golden = list(clean_lines(targets[pair, test]))
        runs = [*zip(rows["run"], rows["seed"], strict=True)]
        bases = [*zip(rows["against"], rows["seed"], strict=True)]
        lines = {key: _lines(texts, pair, key, test) for key in dict.fromkeys([*bases, *runs])}
        tested.append(_differences(runs, bases, lines, golden, pair).set_index(rows.index))
    differences = pd.concat([part for part in tested if len(part)] or tested)
    return wanted.drop(columns=DIFFERENCE, errors="ignore").join(differences)


def _lines(texts: dict[tuple, Path], pair: str, system: System, test: str) -> list[str]:
    run, seed = system
    if (pair, run, seed, test) not in texts:
        raise UserError(
            f"translations: expected {test} of {run} ({pair}, seed {seed}), found none; "
            "translate it first"
        )
    return list(clean_lines(texts[pair, run, seed, test]))


def _differences(
    runs: list[System],
    bases: list[System],
    lines: dict[System, list[str]],
    golden: list[str],
    pair: str,
) -> pd.DataFrame:
    """Return one row of `DIFFERENCE` for each run and its base, all on the same resamples."""
    language = parse_pair(pair).tgt
    resampled = resample_bleu(list(lines.values()), golden, language)
    scores = dict(zip(lines, resampled, strict=True))
    rows = []
    for run, base in zip(runs, bases, strict=True):
        (tested,) = judge_systems(scores[base], [scores[run]], golden, language)
        rows.append((tested.delta, tested.low, tested.high, tested.p_value, tested.signature))
    return pd.DataFrame(rows, columns=DIFFERENCE)


def compare_with_baseline(
    scores: list[dict[str, Any]], translations: list[Path], references: list[Path]
) -> pd.DataFrame:
    """Return the main score of every run and its difference to the baseline of the same seed.

    Columns: those of `COLUMNS`, `against`, `DIFFERENCE` and, since `signature` is that of the
    score, `test_signature` for the bootstrap. Differences of the baseline, and of runs without a
    baseline on that test set, are missing.
    """
    table, key = main_scores(scores), [*RUN, "test_set"]
    bases = table.loc[table["run"] == BASE, ["pair", "seed", "test_set"]].assign(against=BASE)
    table = table.merge(bases, how="left", on=["pair", "seed", "test_set"])
    table.loc[table["run"] == BASE, "against"] = None
    wanted = table.loc[table["against"].notna(), [*key, "against"]]
    tested = compare(wanted, translations, references).drop(columns="against")
    return table.merge(tested.rename(columns={"signature": "test_signature"}), how="left", on=key)


Comparison = Annotated[pd.DataFrame, compare_with_baseline]
"""Main scores of runs beside their baselines, for parameters of functions."""


def over_seeds(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return means and deviations (ddof 1) of score and delta over seeds, a row for each of `by`.

    `t_low`, `t_high` and `t_p`: paired t-test of the deltas, missing below two of them.
    """
    groups = table.groupby(by, sort=False)
    means = groups.agg(
        score=("score", "mean"),
        score_sd=("score", "std"),
        delta=("delta", "mean"),
        delta_sd=("delta", "std"),
        seeds=("seed", "nunique"),
    )
    deltas = [values.dropna() for _, values in groups["delta"]]
    tests = [paired_t(values) if len(values) > 1 else (np.nan,) * 3 for values in deltas]
    columns = ["t_low", "t_high", "t_p"]
    return means.join(pd.DataFrame(tests, means.index, columns, float)).reset_index()
