"""Scores of runs: differences to other runs, and means over seeds with their spread."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from headcount.analysis.frames import BASE, RUN, Facts, grouped, run_of
from headcount.analysis.inputs import BLEU
from headcount.analysis.stats import paired_t
from headcount.base.errors import UserError
from headcount.base.settings.section import parse_pair
from headcount.data.lines import clean_lines
from headcount.scoring.bootstrap import (
    SEED,
    bleu_signature,
    judge_scores,
    resample_bleu,
    resample_means,
)

COLUMNS = [*RUN, "test_set", "metric", "score", "signature"]
COLUMNS += ["engine", "beam", "length_penalty", "sentences", "source_truncated", "hit_max_length"]
DRAWS = "range of draws"
SEEDS = "standard deviation over seeds"
BOOTSTRAP = "bootstrap, 95 %"
_DELTA = ["delta", "delta_low", "delta_high"]
DIFFERENCE = [*_DELTA, "p", "signature"]


def score_frame(scores: Facts) -> pd.DataFrame:
    """Return one score a row, from the `bleu.json` of runs, with columns of `COLUMNS`."""
    rows = [{name: run[name] for name in RUN} | score for run in scores for score in run["scores"]]
    return pd.DataFrame(rows, columns=COLUMNS)


def main_scores(scores: Facts) -> pd.DataFrame:
    """Return the rows of `score_frame` by the first metric of the files, with a new index."""
    table = score_frame(scores)
    return table[table["metric"] == main_metric(table)].reset_index(drop=True)


def main_metric(table: pd.DataFrame) -> str:
    """Return the first metric of a table, which stands in the place of BLEU; without one BLEU."""
    return next(iter(table.get("metric", [])), BLEU)


def compare(wanted: pd.DataFrame, translations: list[Path], references: list[Path]) -> pd.DataFrame:
    """Return the rows of `wanted` with the columns `DIFFERENCE`, by paired bootstrap.

    The score of `reference_run`, of the same pair and seed, is subtracted. p is sacreBLEU's, nearly
    one-sided. `translations` may be CSVs of their sentences' scores, by another metric than BLEU.
    """
    wanted = wanted.reset_index(drop=True).drop(columns=DIFFERENCE, errors="ignore")
    texts = {(*run_of(path), path.stem): path for path in translations}
    texts |= {(path.parent.name, path.stem): path for path in references}
    cells = {}
    for (pair, test), rows in wanted.groupby(["pair", "test_set"], sort=False):
        systems = pd.concat([rows["reference_run"], rows["run"]]), pd.concat([rows["seed"]] * 2)
        keys = list(dict.fromkeys(zip(*systems, strict=True)))
        systems = [_found(texts, (pair, *key, test)) for key in keys]
        resampled, signature = _resample(systems, _found(texts, (pair, test)), pair)
        scores = dict(zip(keys, resampled, strict=True))
        for row in rows.itertuples():
            both = scores[row.reference_run, row.seed], [scores[row.run, row.seed]]
            (one,) = judge_scores(*both, signature)
            cells[row.Index] = one.delta, one.low, one.high, one.p_value, one.signature
    differences = pd.DataFrame.from_dict(cells, orient="index", columns=DIFFERENCE)
    return wanted.join(differences.astype(dict.fromkeys(DIFFERENCE[:-1], float)))


def _resample(systems: list[Path], references: Path, pair: str) -> tuple[np.ndarray, str]:
    """Return scores of systems on a test set and on resamples, and their signature."""
    targets, language = list(clean_lines(references)), parse_pair(pair).tgt
    if systems[0].suffix == ".csv":
        scores = [pd.read_csv(path)["score"].to_numpy() for path in systems]
        return resample_means(scores), f"{systems[0].parent.name}|mean|bs:1000|seed:{SEED}"
    lines = [list(clean_lines(path)) for path in systems]
    return resample_bleu(lines, targets, language), bleu_signature(targets, language)


def _found(texts: dict[tuple, Path], key: tuple) -> Path:
    if key not in texts:
        text = ", ".join(map(str, key))
        raise UserError(f"comparison: expected a text of {text}, found none; translate it first")
    return texts[key]


def with_baseline(scores: Facts, translations: list[Path], references: list[Path]) -> pd.DataFrame:
    """Return the main score of every run and its difference to the baseline of the same seed."""
    table, tests = main_scores(scores), ["pair", "seed", "test_set"]
    base = table["run"] == BASE
    wanted = table.loc[~base, ["run", *tests]].merge(table.loc[base, tests], on=tests)
    tested = compare(wanted.assign(reference_run=BASE), translations, references)
    tested = tested.rename(columns={"signature": "test_signature"})
    return table.merge(tested, how="left", on=["run", *tests])


def t_tests(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return means and SD of score and delta over seeds by `by`, with t-tests of deltas (`t_…`)."""
    groups = table.groupby(by, sort=False)
    deviations = groups[["score", "delta"]].std().add_suffix("_sd")
    means = groups[["score", "delta"]].mean().join(deviations)
    means["seeds"] = groups["seed"].nunique()
    tests = [paired_t(deltas) for _, deltas in groups["delta"]]
    columns = ["t_low", "t_high", "t_p"]
    return means.join(pd.DataFrame(tests, means.index, columns, float)).reset_index()


def over_seeds(
    rows: pd.DataFrame,
    by: list[str],
    value: str = "score",
    means: Sequence[str] = (),
    draw: str = "",
    bootstrap: str = BOOTSTRAP,
) -> pd.DataFrame:
    """Return the mean of `value` over seeds for every group of `by`, in order of appearance.

    Draws of one seed are averaged first, so that every seed counts once. `spread` names the
    interval from `low` to `high`. It is `DRAWS` where a seed has several rows or `draw` a number,
    else `SEEDS` (mean ± standard deviation, ddof 1) where there are several seeds, else the text
    `bootstrap`, with the interval of `delta` laid around the control's value.
    """
    rows = rows.astype(dict.fromkeys([value, *means, *_DELTA], float))
    groups, seeds = grouped(rows, by), grouped(rows, [*by, "seed"])[value].mean()
    of_seeds = grouped(seeds.reset_index(), by)[value]
    mean, deviation, count = of_seeds.mean(), of_seeds.std(), of_seeds.size()
    drawn = groups.size() > count
    if draw:
        drawn |= groups[draw].count() > 0
    delta = groups[_DELTA].first()
    points = pd.DataFrame({value: mean, **{name: groups[name].mean() for name in means}})
    for side, sign in (("low", -1), ("high", 1)):
        around_control = mean - delta["delta"] + delta[f"delta_{side}"]
        one_draw = (mean + sign * deviation).where(count > 1, around_control)
        extreme = groups[value].min() if side == "low" else groups[value].max()
        points[side] = extreme.where(drawn, one_draw)
    cases = [drawn, count > 1, points["low"].notna()]
    points["spread"] = np.select(cases, [DRAWS, SEEDS, bootstrap], None)
    return points.assign(seeds=count).reset_index()
