"""Masks and dropout as regularisers, and ways to choose masked heads, compared over seeds."""

from typing import Annotated

import pandas as pd

from headcount.analysis.captions import note
from headcount.analysis.collapse import frequencies, with_updates
from headcount.analysis.frames import BASE, RUN
from headcount.analysis.scores import MAIN, main_scores, over_seeds
from headcount.analysis.tables.lock_in import Heads, History, Runs
from headcount.base.errors import UserError
from headcount.base.settings.runs import label
from headcount.base.settings.training_runs import RunSettings

ENOUGH = 3
"""Seeds from which on a run may be chosen although other runs have more."""

DEV, MEAN, TUNED = "dev", "mean", "tuned dropout"
_CELL = ["pair", "test_set", "statistic", "run"]
_VALUES = [*RUN, "test_set", "statistic", "value"]


def regularisation(
    models_by_dropout: list[dict],
    scores: list[dict],
    curves: pd.DataFrame,
    masks: pd.DataFrame,
    trained_runs: Runs,
) -> pd.DataFrame:
    """Return dev loss and scores of runs, and their differences to runs without masks.

    `against` is the baseline, the run without masks of the same dropout, or the run without masks
    whose dev loss is lowest. `share` is the share of heads that an update masks.
    """
    models = _models(models_by_dropout, curves)
    runs = _chosen(models, trained_runs)
    shares = frequencies(with_updates(masks)).groupby(["pair", "run"]).mean().rename("share")
    runs = runs.join(shares, on=["pair", "run"]).fillna({"share": 0.0})
    facts = models.assign(test_set=DEV).melt(
        [*RUN, "test_set"], ["dev_loss", "update", "cut_short"], "statistic"
    )
    table = compared(pd.concat([facts, _scores(scores)]), runs, ["baseline", "same dropout", TUNED])
    about = runs[["pair", "run", "dropout", "share", "chosen"]]
    columns = [*_CELL, *about.columns[2:], "reference", "against", "value", "low", "high", "p"]
    return table.merge(about, on=["pair", "run"])[[*columns, "seeds"]]


def _models(models_by_dropout: list[dict], curves: pd.DataFrame) -> pd.DataFrame:
    """Return dropout, dev loss and update of the weights that became the models.

    `cut_short`: fewer validations followed than early stopping waits for, or none.
    """
    models = pd.json_normalize(models_by_dropout).rename(columns={"model.dropout": "dropout"})
    patience = models.get("provenance.settings.train.patience", pd.Series(0, models.index))
    steps = curves[[*RUN, "step"]].merge(models[[*RUN, "update"]], on=RUN)
    waited = steps.query("step > update").groupby(RUN).size().rename("waited")
    waited = models.join(waited, on=RUN)["waited"].fillna(0)
    models["cut_short"] = (patience.fillna(0).clip(lower=1) > waited).astype(float)
    return models[[*RUN, "dropout", "dev_loss", "update", "cut_short"]]


def _chosen(models: pd.DataFrame, trained_runs: Runs) -> pd.DataFrame:
    """Return the runs, which are `chosen` by dev loss, and which others they are compared with.

    The lowest mean dev loss over the seeds that all runs of a pair have chooses one run without
    masks and one with masks. Runs with fewer than `ENOUGH` seeds, and fewer than others, do not
    count.
    """
    pairs = models.groupby(["pair", "run"], sort=False)
    runs = pairs.agg(dropout=("dropout", "first"), seeds=("seed", "size"))
    runs["masks"] = [bool(trained_runs[run].heads) for _, run in runs.index]
    enough = runs["seeds"] >= runs.groupby("pair")["seeds"].transform("max").clip(upper=ENOUGH)
    counted = models.join(runs[enough][["masks"]], on=["pair", "run"], how="inner")
    have = counted.groupby(["pair", "seed"])["run"].transform("nunique")
    common = counted[have == counted.groupby("pair")["run"].transform("nunique")]
    runs["loss"] = common.groupby(["pair", "run"])["dev_loss"].mean()
    runs = runs.reset_index()
    best = runs.dropna(subset="loss").sort_values("loss", kind="stable")
    best = best.drop_duplicates(["pair", "masks"])
    plain = runs[~runs["masks"]].drop_duplicates(["pair", "dropout"], keep="last")
    tuned = best[~best["masks"]].set_index("pair")["run"]
    runs["baseline"], runs[TUNED] = BASE, runs["pair"].map(tuned).fillna(BASE)
    same = plain.set_index(["pair", "dropout"])["run"].rename("same dropout")
    runs = runs.join(same, on=["pair", "dropout"])
    chosen = runs.index.isin(best.index) | (runs["run"] == runs[TUNED])
    return runs.assign(chosen=chosen).replace({"chosen": {True: "yes", False: "no"}})


def _scores(scores: list[dict]) -> pd.DataFrame:
    """Return the main score of all trainings: the mean over test sets, then every test set.

    Raises UserError for a training that lacks a test set of its pair.
    """
    table = main_scores(scores)
    lacks = table.groupby(RUN)["test_set"].transform("nunique") < (
        table.groupby("pair")["test_set"].transform("nunique")
    )
    if lacks.any():
        pair, run, seed = table.loc[lacks, RUN].iloc[0]
        raise UserError(
            f"bleu.json of {run}, seed {seed} of {pair}: expected {MAIN} on all test sets that "
            "other runs have; translate and score it again"
        )
    means = table.groupby(RUN, sort=False)["score"].mean().reset_index().assign(test_set=MEAN)
    tests = [rows for _, rows in table.groupby("test_set", sort=False)]
    both = pd.concat([means, *tests]).assign(statistic=MAIN)
    return both.rename(columns={"score": "value"})[_VALUES]


def compared(values: pd.DataFrame, runs: pd.DataFrame, references: list[str]) -> pd.DataFrame:
    """Return means over seeds and, after those of a run, mean differences to other runs.

    Columns of `runs` named by `references` have the other runs. Differences of dev loss and scores
    are paired by seed, with the interval and p of a paired t-test.
    """
    means = values.groupby(_CELL, sort=False, dropna=False)["value"].agg(["mean", "size"])
    means = means.set_axis(["value", "seeds"], axis=1).reset_index()
    others = runs.melt(["pair", "run"], references, "reference", "against").dropna()
    tested = values[values["statistic"].isin(["dev_loss", MAIN])].merge(others, on=["pair", "run"])
    other = values.rename(columns={"run": "against", "value": "other"})
    tested = tested.merge(other, on=["pair", "test_set", "statistic", "against", "seed"])
    tested = tested[tested["run"] != tested["against"]].rename(columns={"value": "score"})
    tested["delta"] = tested["score"] - tested["other"]
    differences = over_seeds(tested, [*_CELL, "reference", "against"]).drop(columns="score")
    names = {"delta": "value", "t_low": "low", "t_high": "high", "t_p": "p"}
    both = pd.concat([means, differences.rename(columns=names)])
    cells = means.iloc[means.groupby("pair", sort=False).ngroup().argsort(kind="stable")][_CELL]
    return cells.merge(both, on=_CELL).merge(runs[["pair", "run"]], on=["pair", "run"])


Regularisation = Annotated[pd.DataFrame, regularisation]


@note
def optimum(table: Regularisation) -> list[str]:
    """Return warnings where longer trainings, higher dropout or more seeds may be better."""
    texts = []
    for pair, rows in table.groupby("pair", sort=False):
        ends = rows[rows["statistic"] == "cut_short"].set_index("run")
        late, few = ends["value"] > 0, ends["seeds"] < min(ENOUGH, ends["seeds"].max())
        plain = ends["share"] == 0
        tuned = ends.loc[plain & (ends["chosen"] == "yes"), "dropout"].max()
        higher = plain & ~few & (ends["value"] <= 0.5) & (ends["dropout"] > tuned)
        near = rows[(rows["statistic"] == "dev_loss") & (rows["reference"] == TUNED)]
        near = near[(near["share"] == 0) & (near["low"] <= 0)].set_index("run")
        doubts = {
            "Dev loss was still falling when trainings ended": late,
            "Too few seeds to be chosen": few,
            f"Dev loss does not separate these runs from {TUNED}": near["low"].notna(),
        }
        texts += [
            f"{pair}: {text}: {', '.join(of[of].index)}." for text, of in doubts.items() if of.any()
        ]
        if not higher.any():
            texts.append(
                f"{pair}: a dropout above {tuned:g} may be better. None had enough seeds and trained until dev loss stopped falling."
            )
    return texts


def by_share(table: Regularisation, trained_runs: Runs) -> pd.DataFrame:
    """Return differences to the baseline in the mean score, by the share of heads masked.

    `series` is the way to choose heads, missing without masks. A panel for each `way` has the runs
    without masks as well.
    """
    means = table[(table["test_set"] == MEAN) & (table["statistic"] == MAIN)]
    base = means[(means["run"] == BASE) & means["reference"].isna()].assign(value=0.0)
    points = pd.concat([base, means[means["reference"] == "baseline"]], ignore_index=True)
    ways = {name: run.way if run.heads else None for name, run in trained_runs.items()}
    points["series"] = points["run"].map(ways)
    columns = ["pair", "run", "series", "dropout", "share", "value", "low", "high"]
    return points[[*columns, "seeds", "chosen"]]


def by_way(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the points of every way to choose heads, with those of runs without masks."""
    plain = frame["series"].isna()
    ways = frame["series"].dropna().unique()
    parts = [frame[plain | (frame["series"] == way)].assign(way=way) for way in ways]
    return pd.concat(parts or [frame.assign(way="no masks")]).sort_values("share", kind="stable")


def variants(
    curves: pd.DataFrame, scores: list[dict], history: History, heads: Heads, trained_runs: Runs
) -> pd.DataFrame:
    """Return losses, scores, times and mask statistics of runs, and differences to other runs.

    `against` is the baseline, or the run that masks as many heads at random.
    """
    runs = curves[["pair", "run"]].drop_duplicates()
    runs = runs.assign(
        baseline=BASE, random=runs["run"].map(lambda run: _random(trained_runs[run]))
    )
    values = pd.concat([_trained(curves), _scores(scores), _masked(curves, history, heads)])
    table = compared(values, runs, ["baseline", "random"])
    n = table["run"].map({name: run.heads or 0 for name, run in trained_runs.items()})
    table.insert(4, "n", n)
    return table[[*_CELL, "n", "reference", "against", "value", "low", "high", "p", "seeds"]]


def _random(run: RunSettings) -> str:
    """Return the name of the run that masks as many heads at random and is alike in the rest."""
    rest = run.rest if run.method == "importance" else 0
    alike = {"dropout": run.dropout, "after": run.after, "rest": rest}
    return label(RunSettings(method="random", heads=run.heads or 0, **alike))


def _trained(curves: pd.DataFrame) -> pd.DataFrame:
    """Return the lowest dev loss and the seconds of trainings."""
    models = curves.groupby(RUN, sort=False)
    models = models.agg(dev_loss=("dev_loss", "min"), seconds=("seconds", "last")).reset_index()
    base = models[models["run"] == BASE].set_index(["pair", "seed"])["seconds"].rename("base")
    models["relative_seconds"] = models["seconds"] / models.join(base, on=["pair", "seed"])["base"]
    table = models.melt(RUN, var_name="statistic").dropna(subset="value")
    return table.assign(
        test_set=pd.Series(DEV, table.index).where(table["statistic"] == "dev_loss")
    )


def _masked(curves: pd.DataFrame, history: pd.DataFrame, heads: pd.DataFrame) -> pd.DataFrame:
    """Return locked heads of trainings, and how the heads that they masked act on the loss.

    `harmful_share` is the share of masks on heads with a slope above 0. `masked_growth` is about
    what a mask adds to the loss of a sentence. The same of `heads`: if all heads were masked alike.
    """
    rows = history[history["known"]]
    masks = (rows["masked"] * rows["updates"]).astype(float)
    alike = masks.groupby([rows[name] for name in [*RUN, "step"]]).transform("mean")
    harm = (rows["slope_mean"] > 0).astype(float)
    growth = rows["slope_sd"].astype(float) ** 2 / 2 - rows["slope_mean"].astype(float)
    terms = {"harmful_share": masks * harm, "masked_growth": masks * growth}
    terms |= {"heads_harmful_share": alike * harm, "heads_growth": alike * growth}
    model = [rows[name] for name in RUN]
    count = masks.groupby(model).sum()
    means = pd.DataFrame(terms).groupby(model).sum().div(count.where(count > 0), axis=0)
    locked = curves[RUN].drop_duplicates().join(heads.groupby(RUN)["locked_ever"].sum(), on=RUN)
    table = locked.fillna({"locked_ever": 0.0}).join(means, on=RUN).set_index(RUN)
    return table.rename_axis(columns="statistic").stack().dropna().rename("value").reset_index()
