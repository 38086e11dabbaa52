"""Scores of all runs, training curves, and scores by the number of heads in a layer."""

import numpy as np
import pandas as pd

from headcount.analysis import scores as of_runs
from headcount.analysis.captions import note
from headcount.analysis.frames import BASE, RUN, Facts, FrameOf
from headcount.base.settings.model import ModelSettings

SIZES = ["heads_per_layer", "head_width", "parameters"]
COLUMNS = ["pair", "test_set", "run", "seed", *SIZES, "tokens_per_s", "score"]
COLUMNS += ["delta", "delta_low", "delta_high", "p", "over", "signature"]
_MODEL = ["pair", "test_set", "run"]
_CUT = {"source_truncated": "sentences cut before translation"}
_CUT |= {"hit_max_length": "translations at the limit on their length"}
_FEW = 0.01  # of a test set; cutting fewer sentences is worth no warning


def all_scores(
    scores: Facts, pruned_scores: Facts, metric_scores: Facts, pruned_metric_scores: Facts
) -> pd.DataFrame:
    """Return every score of every run, one a row."""
    runs = [*scores, *pruned_scores, *metric_scores, *pruned_metric_scores]
    return of_runs.score_frame(runs)


def mean_scores(all_scores: FrameOf[all_scores], classifier_ablation: pd.DataFrame) -> dict:
    """Return mean scores over seeds in points, nested by pair, run, test set and metric."""
    whole, nested = classifier_ablation.query("order == 'none'"), {}
    table = pd.concat([all_scores, whole])
    means = table.groupby(["pair", "run", "test_set", "metric"], sort=False)["score"].mean()
    for (pair, run, test, metric), score in means.items():
        tests = nested.setdefault(pair, {}).setdefault(run, {}).setdefault(test, {})
        tests[metric] = round(float(score), 2)
    return nested


def training_curves(curves: pd.DataFrame) -> pd.DataFrame:
    """Return the loss at every validation of every training."""
    others = [name for name in curves if name != "pair"]
    shared = curves.duplicated(others, keep=False)  # seconds of two trainings are never the same
    return curves.assign(pair=curves["pair"].mask(shared, "all pairs")).drop_duplicates()


def losses(frame: pd.DataFrame) -> pd.DataFrame:
    """Return mean and range of both losses while all seeds train, by updates and by minutes."""
    long = frame.melt([*RUN, "step", "seconds"], ["dev_loss", "train_loss"], "loss")
    groups = long.groupby(["pair", "run", "loss", "step"], sort=False)
    table = groups["value"].agg(["mean", "min", "max", "size"])
    table["minutes of training"] = groups["seconds"].mean() / 60
    table = table.reset_index().assign(updates=lambda rows: rows["step"])
    whole = table["size"] == table.groupby(["pair", "run"])["size"].transform("max")
    names = ["pair", "run", "loss", "mean", "min", "max"]
    return table[whole].melt(names, ["updates", "minutes of training"], "time", "at")


def heads_per_layer(
    models_by_heads: Facts, curves: pd.DataFrame, comparison: FrameOf[of_runs.with_baseline]
) -> pd.DataFrame:
    """Return scores of models that differ in their heads per layer, fewest heads first.

    With several seeds, a row without a seed follows: means, and a paired t-test over seeds.
    """
    speed = curves.groupby(RUN, sort=False)["tokens_per_s"].median().reset_index()
    table = _sizes(models_by_heads).merge(speed, on=RUN).merge(comparison, on=RUN)
    table["signature"] = table["test_signature"].fillna(table["signature"])
    table["over"] = np.where(table["delta"].notna(), "test sentences", None)
    means = of_runs.t_tests(table, _MODEL).query("seeds > 1").drop(columns="seeds")
    means = means.rename(columns={"t_low": "delta_low", "t_high": "delta_high", "t_p": "p"})
    speed = table.groupby(_MODEL)["tokens_per_s"].mean()
    same = table.drop_duplicates(_MODEL)[[*_MODEL, *SIZES, "signature"]]
    means = means.merge(same, on=_MODEL).join(speed, on=_MODEL).assign(over="seeds")
    both = pd.concat([table, means], ignore_index=True)
    both["task"] = both.groupby(["pair", "test_set"], sort=False).ngroup()
    order = ["task", "heads_per_layer"]
    return both.sort_values(order, kind="stable", ignore_index=True)[COLUMNS]


def _sizes(models_by_heads: Facts) -> pd.DataFrame:
    """Return the sizes of models that have the dropout of their baseline."""
    models = [ModelSettings.model_validate(facts["model"]) for facts in models_by_heads]
    sizes = [(model.heads, model.head_width, model.dropout) for model in models]
    table = pd.DataFrame(models_by_heads, columns=[*RUN, "parameters"])
    table[["heads_per_layer", "head_width", "dropout"]] = sizes
    alike = ["pair", "seed", "dropout"]
    return table.merge(table.loc[table["run"] == BASE, alike], on=alike)


@note
def cut_off(frame: pd.DataFrame) -> list[str]:
    """Return a warning for every run that cut off many sentences or translations of a test set."""
    table = frame[frame["metric"] == of_runs.main_metric(frame)]
    shares = table[[*_CUT]].div(table["sentences"], axis=0)
    most = shares.groupby([table["pair"], table["run"]], sort=False).max().stack()
    return [
        f"{run} of {pair}: {_CUT[what]}: up to {share:.1%} of a test set."
        for (pair, run, what), share in most[most > _FEW].items()
    ]


@note
def doubts(scores: Facts) -> list[str]:
    """Return the warnings in `bleu.json` of the baselines."""
    text = f"{BASE}, seed {{seed}} of {{pair}}, {{}}."
    runs = [run for run in scores if run["run"] == BASE]
    return [text.format(words, **run) for run in runs for words in run.get("warnings", [])]
