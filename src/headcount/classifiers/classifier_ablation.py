"""Heads of a classifier removed one by one, all but one, and in steps: accuracy instead of BLEU."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from headcount.ablation.ablation import (
    COLUMNS,
    DEV,
    ablation_rows,
    read_single_effects,
    resamples_for,
)
from headcount.ablation.masked_bleu import Differences, point_rows
from headcount.ablation.pruning_orders import list_curves
from headcount.ablation.pruning_profile import AREA_COLUMNS, area_rows
from headcount.ablation.pruning_profile import COLUMNS as PROFILE_COLUMNS
from headcount.base.files import write_result
from headcount.base.ranking import Heads
from headcount.base.settings.ablation import ClassifierSettings
from headcount.classifiers.classifier import Classifier
from headcount.data.entailment import Example, read_pairs
from headcount.scoring.bootstrap import SEED, judge_scores, resample_accuracy


def write_classifier_ablation(
    classifier: Classifier,
    files: Mapping[str, Path],
    settings: ClassifierSettings,
    seed: int,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write classifier_ablation.csv, classifier_profile.csv and _areas.csv into a folder.

    They have the columns of ablation.csv, pruning_profile.csv and its areas, with `accuracy` in
    percent in place of `bleu`. `files`: labelled pairs by test set, `DEV` before `matched` and
    `mismatched`. Importance is measured on dev, pruning scored on matched. Raises
    UserError for pairs without a label that the model knows.
    """
    tests = {test: read_pairs(path, settings.pairs) for test, path in files.items()}
    for pairs in tests.values():
        classifier.gold(pairs)  # refuses labels before any work
    grid = classifier.encoder.grid
    samples = resamples_for(grid)

    def compare(test: str, sets: Sequence[Heads]) -> Differences:
        return _judged(_resampled(classifier, tests[test], sets, samples))

    rows = ablation_rows(grid, list(tests), compare)
    sizes = {test: len(pairs) for test, pairs in tests.items()}
    facts = {"pairs": sizes, "provenance": origin}
    single = out / "classifier_ablation.csv"
    write_result(single, _accuracy(COLUMNS), rows, facts)
    effects = read_single_effects(single, grid, _accuracy(COLUMNS))
    pruning, ranked = settings.pruning(), partial(classifier.importance, tests[DEV])
    curves = list(list_curves(grid, ranked, effects, pruning, seed))
    points = [point for curve in curves for point in curve.points()]
    scores = _resampled(classifier, tests["matched"], [point.heads for point in points], 1000)
    rows = point_rows(grid, "matched", points, _judged(scores))
    write_result(out / "classifier_profile.csv", _accuracy(PROFILE_COLUMNS), rows, facts)
    areas = area_rows("matched", curves, scores)
    write_result(out / "classifier_profile_areas.csv", AREA_COLUMNS, areas, facts)


def _resampled(
    classifier: Classifier, pairs: list[Example], sets: Sequence[Heads], samples: int
) -> dict[Heads, np.ndarray]:
    distinct = list(dict.fromkeys([(), *sets]))
    with tqdm(total=len(distinct) * len(pairs), unit="pair", disable=None) as bar:
        found = classifier.correct(pairs, distinct, bar.update)
    scores = resample_accuracy(list(found.values()), samples)
    return dict(zip(found, scores, strict=True))


def _judged(scores: dict[Heads, np.ndarray]) -> Differences:
    signature = f"accuracy|bs:{len(scores[()]) - 1}|seed:{SEED}"
    judged = judge_scores(scores[()], list(scores.values()), signature)
    return dict(zip(scores, judged, strict=True))


def _accuracy(columns: Sequence[str]) -> list[str]:
    return ["accuracy" if column == "bleu" else column for column in columns]
