"""Scores of runs on test sets, and how they differ from scores of other runs."""

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

MAIN = "bleu"  # the metric of the paired bootstrap

COLUMNS = [*RUN, "test_set", "metric", "score", "signature"]
COLUMNS += ["engine", "beam", "length_penalty", "sentences", "truncated", "capped"]
DIFFERENCE = ["delta", "delta_low", "delta_high", "p", "signature"]


def score_frame(scores: list[dict[str, Any]]) -> pd.DataFrame:
    """Return one score a row, from the `bleu.json` of runs; columns of `COLUMNS`."""
    rows = [{name: run[name] for name in RUN} | score for run in scores for score in run["scores"]]
    table = pd.DataFrame(rows, columns=COLUMNS)
    if table["engine"].isna().any():
        raise UserError("bleu.json: expected the engine of every score; run the experiment again")
    return table


def main_scores(scores: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the rows of `score_frame` whose metric is `MAIN`, with a new index."""
    return score_frame(scores).query("metric == @MAIN").reset_index(drop=True)


def compare(wanted: pd.DataFrame, translations: list[Path], references: list[Path]) -> pd.DataFrame:
    """Return the rows of `wanted` with the columns `DIFFERENCE`, by paired bootstrap.

    `wanted` has at least pair, run, seed, test_set and `against`: the run of the same pair and seed
    whose score is subtracted. `delta` is in points, its interval is the 95 % interval, and p is
    sacreBLEU's, which is nearly one-sided. All runs of a test set have the same resamples, and are
    resampled once, so ask for all comparisons at once. Raises UserError for a missing text.
    """
    wanted = wanted.reset_index(drop=True).drop(columns=DIFFERENCE, errors="ignore")
    texts = {(*run_of(path), path.stem): path for path in translations}
    texts |= {(path.parent.name, path.stem): path for path in references}
    cells = {}
    for (pair, test), rows in wanted.groupby(["pair", "test_set"], sort=False):
        systems = pd.concat([rows["against"], rows["run"]]), pd.concat([rows["seed"]] * 2)
        keys = list(dict.fromkeys(zip(*systems, strict=True)))
        lines = [_read(texts, (pair, *key, test)) for key in keys]
        targets, language = _read(texts, (pair, test)), parse_pair(pair).tgt
        scores = dict(zip(keys, resample_bleu(lines, targets, language), strict=True))
        for row in rows.itertuples():
            both = scores[row.against, row.seed], [scores[row.run, row.seed]]
            (result,) = judge_systems(*both, targets, language)
            numbers = result.delta, result.low, result.high, result.p_value
            cells[row.Index] = *numbers, result.signature
    differences = pd.DataFrame.from_dict(cells, orient="index", columns=DIFFERENCE)
    return wanted.join(differences.astype(dict.fromkeys(DIFFERENCE[:-1], float)))


def _read(texts: dict[tuple, Path], key: tuple) -> list[str]:
    if key not in texts:
        text = ", ".join(map(str, key))
        raise UserError(f"comparison: expected a text of {text}, found none; translate it first")
    return list(clean_lines(texts[key]))


def compare_with_baseline(
    scores: list[dict[str, Any]], translations: list[Path], references: list[Path]
) -> pd.DataFrame:
    """Return the main score of every run and its difference to the baseline of the same seed.

    Columns: `COLUMNS`, `against`, `DIFFERENCE`; `test_signature` is the bootstrap's signature.
    Differences are missing for the baseline, and for runs without a baseline on the test set.
    """
    table, tests = main_scores(scores), ["pair", "seed", "test_set"]
    base = table["run"] == BASE
    wanted = table.loc[~base, ["run", *tests]].merge(table.loc[base, tests], on=tests)
    tested = compare(wanted.assign(against=BASE), translations, references)
    tested = tested.rename(columns={"signature": "test_signature"})
    return table.merge(tested, how="left", on=["run", *tests])


Comparison = Annotated[pd.DataFrame, compare_with_baseline]
"""Main scores of runs beside their baselines, for parameters of functions."""


def t_tests(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return means and deviations (ddof 1) of score and delta over seeds, a row for each of `by`.

    `t_low`, `t_high` and `t_p`: paired t-test of the deltas, missing below two of them.
    """
    groups = table.groupby(by, sort=False)
    deviations = groups[["score", "delta"]].std().add_suffix("_sd")
    means = groups[["score", "delta"]].mean().join(deviations)
    means["seeds"] = groups["seed"].nunique()
    deltas = [values.dropna() for _, values in groups["delta"]]
    tests = [paired_t(values) if len(values) > 1 else (np.nan,) * 3 for values in deltas]
    columns = ["t_low", "t_high", "t_p"]
    return means.join(pd.DataFrame(tests, means.index, columns, float)).reset_index()
