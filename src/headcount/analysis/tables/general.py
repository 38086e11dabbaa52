"""Scores of all runs, training curves, and scores by the number of heads in a layer."""

from typing import Annotated, Any

import pandas as pd

from headcount.analysis.captions import note
from headcount.analysis.frames import BASE, RUN
from headcount.analysis.scores import MAIN, Comparison, over_seeds, score_frame
from headcount.base.settings.model import ModelSettings

SIZES = ["heads_per_layer", "head_width", "parameters"]
COLUMNS = ["pair", "test_set", "run", "seed", *SIZES, "tokens_per_s", "score"]
COLUMNS += ["delta", "delta_low", "delta_high", "p", "over", "signature"]
SENTENCES, SEEDS = "test sentences", "seeds"
_MODEL = ["pair", "test_set", "run"]
_FEW = 0.01  # of a test set; cutting fewer sentences is worth no warning


def all_scores(scores: list[dict], pruned_scores: list[dict]) -> pd.DataFrame:
    """Return every score of every run, one a row."""
    return score_frame([*scores, *pruned_scores])


def mean_scores(
    scores: list[dict], pruned_scores: list[dict], classifier_ablation: pd.DataFrame
) -> dict[str, Any]:
    """Return mean scores over seeds in points, nested by pair, run, test set and metric."""
    whole = classifier_ablation.query("order == 'none'")
    table = pd.concat([all_scores(scores, pruned_scores), whole])
    nested: dict[str, Any] = {}
    means = table.groupby(["pair", "run", "test_set", "metric"], sort=False)["score"].mean()
    for (pair, run, test, metric), score in means.items():
        tests = nested.setdefault(pair, {}).setdefault(run, {}).setdefault(test, {})
        tests[metric] = round(float(score), 2)
    return nested


def training_curves(curves: pd.DataFrame) -> pd.DataFrame:
    """Return the loss at every validation of every training."""
    return curves


def heads_per_layer(
    models_by_heads: list[dict], curves: pd.DataFrame, comparison: Comparison
) -> pd.DataFrame:
    """Return scores of models that differ in their heads per layer, fewest heads first.

    `delta` is the difference to the baseline of the seed. Its interval and p are `over` test
    sentences. With several seeds, a row without a seed follows: means, and the interval and p of a
    paired t-test over seeds.
    """
    speed = curves.groupby(RUN, sort=False)["tokens_per_s"].median().reset_index()
    table = _sizes(models_by_heads).merge(speed, on=RUN).merge(comparison, on=RUN)
    tested = table["delta"].notna()
    table["signature"] = table["test_signature"].fillna(table["signature"])
    table["over"] = pd.Series(SENTENCES, table.index).where(tested)
    both = pd.concat([table, _means(table)], ignore_index=True)
    both["task"] = both.groupby(["pair", "test_set"], sort=False).ngroup()
    ordered = both.sort_values(["task", "heads_per_layer"], kind="stable", ignore_index=True)
    return ordered[COLUMNS]


def _sizes(models_by_heads: list[dict]) -> pd.DataFrame:
    """Return the sizes of models with the dropout of their baseline."""
    rows = []
    for model in models_by_heads:
        sizes = ModelSettings.model_validate(model["model"])
        numbers = (sizes.heads, sizes.head_width, model["parameters"], sizes.dropout)
        rows.append((*(model[name] for name in RUN), *numbers))
    table = pd.DataFrame(rows, columns=[*RUN, *SIZES, "dropout"])
    base = table.loc[table["run"] == BASE, ["pair", "seed", "dropout"]]
    return table.merge(base, on=["pair", "seed", "dropout"]).drop(columns="dropout")


def _means(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each model and test set that has several seeds."""
    means = over_seeds(table, _MODEL).query("seeds > 1")
    speed = table.groupby(_MODEL)["tokens_per_s"].mean().reset_index()
    fixed = table.drop_duplicates(_MODEL)[[*_MODEL, *SIZES, "signature"]]
    names = {"t_low": "delta_low", "t_high": "delta_high", "t_p": "p"}
    rows = means.rename(columns=names).merge(fixed, on=_MODEL).merge(speed, on=_MODEL)
    return rows.assign(over=SEEDS)


HeadsPerLayer = Annotated[pd.DataFrame, heads_per_layer]


def points_by_heads(table: HeadsPerLayer) -> pd.DataFrame:
    """Return the mean score of every model over seeds, with `low` and `high` for `spread`.

    That is the standard deviation over seeds. With one seed it is the bootstrap interval of the
    difference to the baseline, drawn around the model's score.
    """
    runs = table[table["over"] != SEEDS]
    points = over_seeds(runs, _MODEL).merge(
        runs.drop_duplicates(_MODEL), on=_MODEL, suffixes=("", "_1")
    )
    for side in ("low", "high"):
        sign = 1 if side == "high" else -1
        bootstrap = points["score"] - points["delta"] + points[f"delta_{side}"]
        spread = points["score"] + sign * points["score_sd"]
        points[side] = spread.fillna(bootstrap).fillna(points["score"])
    points["spread"] = None
    points.loc[points["delta"].notna(), "spread"] = (
        f"bootstrap, 95 %, of the difference to the {BASE}"
    )
    points.loc[points["seeds"] > 1, "spread"] = "standard deviation over seeds"
    return points[[*_MODEL, "heads_per_layer", "score", "low", "high", "spread", "seeds"]]


@note
def cut_off(frame: pd.DataFrame) -> list[str]:
    """Return a warning for every run that cut off many sentences or translations of a test set."""
    shares = frame[frame["metric"] == MAIN].copy()
    cut = ["truncated", "capped"]
    shares[cut] = shares[cut].div(shares["sentences"], axis=0)
    most = shares.groupby(["pair", "run"], sort=False)[cut].max()
    return [
        f"{run} of {pair}: of a test set, up to {row.truncated:.1%} of the sentences were cut "
        f"before translation, and up to {row.capped:.1%} of the translations reached the limit on "
        "their length."
        for (pair, run), row in most[most.max(axis=1) > _FEW].iterrows()
    ]


@note
def doubts(scores: list[dict]) -> list[str]:
    """Return the warnings in `bleu.json` of the baselines."""
    return [
        f"{BASE}, seed {run['seed']} of {run['pair']}, {text}."
        for run in scores
        if run["run"] == BASE
        for text in run.get("warnings", [])
    ]
