"""Small hand-made files of classifiers without some of their heads."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

from headcount.ablation.ablation import COLUMNS as OF_ABLATION
from headcount.ablation.pruning_profile import AREA_COLUMNS
from headcount.ablation.pruning_profile import COLUMNS as OF_PROFILE

ABLATION, PROFILE = (
    ["accuracy" if column == "bleu" else column for column in columns]
    for columns in (OF_ABLATION, OF_PROFILE)
)
WHOLE = 80.0  # accuracy with all heads
PAIRS = {"dev": 60, "matched": 90, "mismatched": 70}

# Change and p without each head, the six of a model; then of the heads that stay alone.
MATCHED = [(-6, 0.0001), (-1, 0.5), (2, 0.004), (-3, 0.02), (0, 0.9), (-4, 0.003)]
MISMATCHED = [(-3, 0.0001), (-1, 0.5), (1, 0.4), (-2, 0.02), (1, 0.9), (1, 0.3)]
DEV = [(-5, 0.0001), (-2, 0.5), (0, 1.0), (-1, 0.02), (1, 0.9), (-3, 0.3)]
EFFECTS = {"dev": DEV, "matched": MATCHED, "mismatched": MISMATCHED}
LONE_DEV = [(-3, 0.1), (-1, 0.6), (-5, 0.1), (-2, 0.1), (-7, 0.001), (-0.5, 0.7)]
STEPS = [(0, 0.0, 1.0), (2, -1.0, 0.2), (4, -10.0, 0.001), (6, -45.0, 0.001)]


def scores(masked: int, delta: float, p: float) -> list:
    return [masked, "", WHOLE + delta, delta, delta - 1, delta + 1, p, "sig"]


def table(path: Path, columns: Sequence[str], rows: list[list]) -> None:
    with path.open("w") as file:
        csv.writer(file).writerows([columns, *rows])


def model(
    root: Path, name: str, abreast: int, effects: dict[str, list], all_but_one: dict[str, dict]
) -> Path:
    """Results of a classifier with six heads, `abreast` in a layer; returns their folder.

    By test set change and p, `effects`: without each head; `all_but_one`: with only the head at
    that place in its layer.
    """
    folder = root / "multi" / name / "seed1"
    folder.mkdir(parents=True)
    rows = []
    for test, single in effects.items():
        rows.append([test, "none", 0, "", "", "", *scores(0, 0.0, 1.0)])
        of_orders = [("single", dict(enumerate(single)), 1), ("all_but_one", all_but_one[test], 2)]
        for order, found, masked in of_orders:
            for place, values in found.items():
                head = [test, order, place + 1, "enc_self", *divmod(place, abreast)]
                rows.append([*head, *scores(masked, *values)])
    table(folder / "classifier_ablation.csv", ABLATION, rows)
    (folder / "classifier_ablation.json").write_text(json.dumps({"pairs": PAIRS}))
    curves = [("all", "importance", ""), ("enc_self", "importance", ""), ("all", "random", 1)]
    rows = [
        ["matched", scope, order, index, draw, *scores(*step)]
        for scope, order, draw in curves
        for index, step in enumerate(STEPS)
    ]
    rows.append(["matched", "all", "one_per_layer", 0, "", *scores(4, -20.0, 0.001)])
    table(folder / "classifier_profile.csv", PROFILE, rows)
    kept = ["matched", "all", "importance", 60.0, 58.0, 62.0, *[""] * 5]
    compared = ["matched", "all", "random", 50.0, 49.0, 51.0, "all/importance", -10, -12, -7, 0.001]
    again = ["matched", "enc_self", *kept[2:]]
    table(folder / "classifier_profile_areas.csv", AREA_COLUMNS, [kept, again, compared])
    return folder


def two_classifiers(root: Path) -> list[Path]:
    """Folders of two layers of three heads, and three layers of two with effects in reverse."""
    all_but_one = {
        "dev": dict(enumerate(LONE_DEV)),
        "matched": {1: (1, 0.03), 5: (-2, 0.004)},
        "mismatched": {1: (0, 1.0), 5: (-1, 0.2)},
    }
    flat = {test: {0: (-1, 0.5), 3: (-1, 0.5), 5: (-1, 0.5)} for test in PAIRS}
    turned = {test: effects[::-1] for test, effects in EFFECTS.items()}
    mini = model(root, "mini", 3, EFFECTS, all_but_one)
    return [mini, model(root, "slim", 2, turned, flat)]


FILES = {
    "classifier_ablation": "classifier_ablation.csv",
    "classifier_facts": "classifier_ablation.json",
    "classifier_profiles": "classifier_profile.csv",
    "classifier_areas": "classifier_profile_areas.csv",
}


def lists(folders: list[Path]) -> dict[str, list[Path]]:
    """Files of these classifiers by kind."""
    return {kind: [folder / name for folder in folders] for kind, name in FILES.items()}
