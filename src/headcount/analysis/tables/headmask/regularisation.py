"""Masks and dropout as regularisers, and ways to choose masked heads, compared over seeds."""

import pandas as pd

from headcount.analysis.captions import note
from headcount.analysis.collapse import frequencies, with_updates
from headcount.analysis.frames import BASE, RUN, Facts, FrameOf, Runs
from headcount.analysis.scores import main_metric, main_scores
from headcount.analysis.stats import paired_t
from headcount.analysis.tables.headmask.lock_in import history, locked_in, run_settings
from headcount.base.settings.training_runs import VARIANTS

ENOUGH = 3  # seeds from which on a run may be chosen although other runs have more

DEV, MEAN, TUNED = "dev", "mean", "tuned dropout"
_REFERENCES = ["baseline", "same dropout", TUNED]
_NAME = ["pair", "run"]
_CELL = ["pair", "test_set", "statistic", "run"]
_TEST = ["reference", "reference_run", "value", "low", "high", "p", "seeds"]


def regularisation(
    models_by_dropout: Facts,
    scores: Facts,
    curves: pd.DataFrame,
    masks: pd.DataFrame,
    trained_runs: Runs,
) -> pd.DataFrame:
    """Return dev loss and scores of runs, and their differences to runs without masks.

    `cut_short`: trainings with fewer validations after the lowest dev loss than early stopping
    waits for, or none.
    """
    models = pd.json_normalize(models_by_dropout).rename(columns={"model.dropout": "dropout"})
    patience = models.get("provenance.settings.train.patience", pd.Series(0, models.index))
    steps = curves[[*RUN, "step"]].merge(models[[*RUN, "update"]], on=RUN).query("step > update")
    waited = models.join(steps.groupby(RUN).size().rename("waited"), on=RUN)["waited"].fillna(0)
    models["cut_short"] = (patience.fillna(0).clip(lower=1) > waited).astype(float)
    runs = _choose(models, trained_runs)
    shares = frequencies(with_updates(masks)).groupby(_NAME).mean().rename("share")
    runs = runs.join(shares, on=_NAME).fillna({"share": 0.0})
    facts = models.melt(RUN, ["dev_loss", "update", "cut_short"], "statistic")
    values = pd.concat([facts.assign(test_set=DEV), _scores(scores)])
    table = _compare(values, runs, _REFERENCES)
    return table[[*_CELL, "dropout", "share", "chosen", *_TEST]]


def _choose(models: pd.DataFrame, trained_runs: Runs) -> pd.DataFrame:
    """Return the runs, whether dev loss chooses them, and the runs that they are compared with.

    The chosen run without masks (else the baseline) and the one with masks have the lowest mean dev
    loss over common seeds. Runs with fewer seeds than `ENOUGH` and than others do not count.
    """
    rows = []
    for pair, of_pair in models.groupby("pair", sort=False):
        loss = of_pair.pivot(index="seed", columns="run", values="dev_loss")
        enough = loss.count() >= min(ENOUGH, loss.count().max())
        best = loss.loc[:, enough].dropna().mean().dropna().sort_values(kind="stable")
        plain = of_pair[[not trained_runs[run].masks for run in of_pair["run"]]]
        masks = ~best.index.isin(plain["run"])
        tuned = next(iter(best.index[~masks]), BASE)
        same = dict(zip(plain["dropout"], plain["run"], strict=True))
        for run, dropout in dict(zip(of_pair["run"], of_pair["dropout"], strict=True)).items():
            chosen = "yes" if run in (tuned, *best.index[masks][:1]) else "no"
            rows.append((pair, run, dropout, chosen, BASE, same.get(dropout), tuned))
    return pd.DataFrame(rows, columns=[*_NAME, "dropout", "chosen", *_REFERENCES])


def _scores(scores: Facts) -> pd.DataFrame:
    """Return the main score of trainings: the mean over all test sets, then every test set."""
    table = main_scores(scores)
    groups = table.groupby(RUN, sort=False)["score"]
    complete = groups.size() == groups.size().groupby("pair").transform("max")
    means = groups.mean()[complete].reset_index().assign(test_set=MEAN, metric=main_metric(table))
    both = pd.concat([means, table.sort_values("test_set", kind="stable")])
    return both.assign(statistic=both["metric"], value=both["score"])[[*_CELL, "seed", "value"]]


def _compare(values: pd.DataFrame, runs: pd.DataFrame, references: list[str]) -> pd.DataFrame:
    """Return means over seeds, then mean differences to the runs in the columns `references`."""
    means = values.groupby(_CELL, sort=False, dropna=False)["value"].agg(value="mean", seeds="size")
    others = runs.melt(_NAME, references, "reference", "reference_run").dropna()
    other = values.rename(columns={"run": "reference_run", "value": "other"})
    scores = values["test_set"].notna() & (values["test_set"] != DEV)
    pairs = values[scores | (values["statistic"] == "dev_loss")].merge(others, on=_NAME)
    pairs = pairs.merge(other, on=["pair", "test_set", "statistic", "reference_run", "seed"])
    pairs = pairs[pairs["run"] != pairs["reference_run"]]
    pairs["delta"] = pairs["value"] - pairs["other"]
    deltas = pairs.groupby([*_CELL, "reference", "reference_run"], sort=False)["delta"]
    tests = [paired_t(delta) for _, delta in deltas]
    differences = deltas.agg(value="mean", seeds="size")
    ends = pd.DataFrame(tests, differences.index, ["low", "high", "p"], float)
    means = means.reset_index()
    cells = means.iloc[means.groupby("pair", sort=False).ngroup().argsort(kind="stable")][_CELL]
    both = pd.concat([means, differences.join(ends).reset_index()])
    return cells.merge(both, on=_CELL).merge(runs, on=_NAME)


@note
def optimum(table: FrameOf[regularisation]) -> list[str]:
    """Return warnings where longer trainings, more dropout or more seeds may be better."""
    texts = []
    for pair, rows in table[table["statistic"] == "cut_short"].groupby("pair", sort=False):
        if late := list(rows.loc[rows["value"] > 0, "run"]):
            texts.append(f"{pair}: trainings ended while dev loss was falling: {', '.join(late)}.")
        plain = rows[rows["share"] == 0]
        tuned = plain.loc[plain["chosen"] == "yes", "dropout"].max()
        better = plain[(plain["dropout"] > tuned) & (plain["value"] <= 0.5)]
        if not (better["seeds"] >= min(ENOUGH, rows["seeds"].max())).any():
            known = "None with enough seeds trained until dev loss stopped falling"
            texts.append(f"{pair}: dropout above {tuned:g} may be better. {known}.")
    return texts


def by_share(table: FrameOf[regularisation], trained_runs: Runs) -> pd.DataFrame:
    """Return mean scores minus the baseline's. `series` is the way to mask, if the run does."""
    means = table[table["test_set"] == MEAN]
    base = means[(means["run"] == BASE) & means["reference"].isna()].assign(value=0.0)
    points = pd.concat([base, means[means["reference"] == "baseline"]], ignore_index=True)
    ways = {name: run.way if run.masks else None for name, run in trained_runs.items()}
    columns = ["dropout", "share", "value", "low", "high", "seeds", "chosen"]
    return points.assign(series=points["run"].map(ways))[[*_NAME, "series", *columns]]


def by_way(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the points of every way to choose heads, beside the runs without masks."""
    plain, ways = frame["series"].isna(), frame["series"].dropna().unique()
    parts = [frame[plain | (frame["series"] == way)].assign(way=way) for way in ways]
    return pd.concat(parts or [frame.assign(way="no masks")]).sort_values("share", kind="stable")


def variants(
    curves: pd.DataFrame,
    scores: Facts,
    history: FrameOf[history],
    heads: FrameOf[locked_in],
    trained_runs: Runs,
) -> pd.DataFrame:
    """Return losses, scores, times and mask statistics of runs, and differences to other runs."""
    settings = run_settings(trained_runs)
    family = ["rescale", "draw", "schedule"]  # of DropHead; Random-N has none of them
    keys = [key for key, (_, methods) in VARIANTS.items() if "random" in methods]
    alike = ["n", *settings.columns.intersection(keys).drop(["share", *family])]
    plain = settings[family].isna().all(axis=1) & (settings["method"] == "random")
    random = settings.loc[plain, alike].reset_index(names="random")
    settings["cooldown_updates"] = settings["cooldown_updates"].where(
        settings["method"] == "importance", 0
    )
    runs = curves[_NAME].drop_duplicates().join(settings[alike], on="run").assign(baseline=BASE)
    runs = runs.merge(random, "left", alike)
    values = pd.concat([_trained(curves), _scores(scores), _masked(curves, history, heads)])
    return _compare(values, runs, ["baseline", "random"])[[*_CELL, "n", *_TEST]]


def _trained(curves: pd.DataFrame) -> pd.DataFrame:
    """Return the lowest dev loss and the seconds of trainings."""
    groups = curves.groupby(RUN, sort=False)
    models = groups.agg(dev_loss=("dev_loss", "min"), seconds=("seconds", "last")).reset_index()
    base = models["seconds"].where(models["run"] == BASE)
    base = base.groupby([models["pair"], models["seed"]]).transform("first")
    models["relative_seconds"] = models["seconds"] / base
    table = models.melt(RUN, var_name="statistic").dropna(subset="value")
    return table.assign(test_set=table["statistic"].map({"dev_loss": DEV}))


def _masked(curves: pd.DataFrame, history: pd.DataFrame, heads: pd.DataFrame) -> pd.DataFrame:
    """Return locked heads, and how masked heads, or all heads alike, act on the loss."""
    rows = history[history["known"]].set_index([*RUN, "step"])
    masks, slope = (rows["masked"] * rows["updates"]).astype(float), rows["slope_mean"]
    alike = masks.groupby([*RUN, "step"]).transform("mean")
    harm, growth = (slope > 0).astype(float), rows["slope_sd"] ** 2 / 2 - slope
    terms = {"harmful_share": harm * masks, "masked_growth": growth * masks}
    terms |= {"heads_harmful_share": harm * alike, "heads_growth": growth * alike}
    means = pd.DataFrame(terms).groupby(RUN).sum().div(masks.groupby(RUN).sum(), axis=0)
    counts = heads.groupby(RUN).size().rename("locked_ever")
    locked = curves[RUN].drop_duplicates().set_index(RUN).join(counts)
    table = locked.fillna(0.0).join(means).rename_axis(columns="statistic")
    return table.stack().dropna().rename("value").reset_index()
