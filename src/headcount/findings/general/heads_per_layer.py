"""BLEU by heads per layer: models as wide as the baseline, and with as many weights."""

from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from headcount.base.files import read_json
from headcount.base.settings.model import ModelSettings
from headcount.findings import exhibits
from headcount.findings.figures import COLOURS, Drawn, legend_above, panels
from headcount.findings.published import voita
from headcount.findings.results import BASE, KEYS, Results, gather, run_of
from headcount.findings.scores import Key, Scores, compare, describe_search, difference_cells
from headcount.findings.setting import OVER_SEEDS, of_one_training, warn_of_unlike_seeds
from headcount.findings.significance import paired_t
from headcount.findings.tables import Table, fill_empty, interval, mean_sd, p_value

COLUMNS = ["pair", "test_set", "run", "seed", "heads_per_layer", "head_width", "parameters"]
COLUMNS += ["tokens_per_s", "bleu", "delta", "delta_low", "delta_high", "p", "over", "signature"]
POINTS = [*COLUMNS[:3], "heads_per_layer", "bleu", "low", "high", "spread", "seeds"]
SENTENCES, SEEDS = "test sentences", "seeds"
_MODEL = COLUMNS[:3]
_CAPTION = (
    "BLEU by the number of heads in every layer, at the same width: fewer heads are wider ones, "
    "and weights are as many."
)
_ALIKE = (
    "Models differ in one number, the heads in every layer of all three kinds of attention. The "
    f"weights of all start as those of the {BASE} of the seed."
)
_PRINTED = (
    f"{voita.SOURCE}, section 1, after Vaswani et al. 2017: 8 heads are almost 1 BLEU better than "
    "one in a model of the same size."
)


@exhibits.table("heads_per_layer", needs=("models_by_heads", "scored", "curves"))
def table(results: Results) -> Table:
    """BLEU by heads per layer, at equal width."""
    tidy = scores_by_heads(results)
    notes = (
        _ALIKE,
        f"Differences are to the {BASE} of the same seed, with 95 % interval and p by paired "
        "bootstrap (nearly one-sided); with several seeds also ± the standard deviation over "
        "seeds, the 95 % t interval of the mean difference, and p by paired t-test.",
        of_one_training(SENTENCES),
        OVER_SEEDS,
        "Tokens/s: source and target, in training, the median over intervals between validations; "
        "other jobs may have run at the same time.",
        _PRINTED,
        results.read(describe_search, "scores"),
    )
    return Table(tidy, _summary(tidy), _CAPTION, notes)


@exhibits.figure("heads_per_layer", needs=("models_by_heads", "scored", "curves"))
def figure(results: Results) -> Drawn:
    """BLEU by heads per layer, at equal width."""
    points = points_by_heads(scores_by_heads(results))
    bars = " or ".join(filter(None, points["spread"].unique()))
    cover = OVER_SEEDS if points["seeds"].max() > 1 else of_one_training(SENTENCES)
    searched = results.read(describe_search, "scores")
    notes = (_ALIKE, f"Bars: {bars}.", cover, _PRINTED, searched)
    return Drawn(_draw(points), points, _CAPTION, notes, warn_of_unlike_seeds(points))


def model_sizes(files: list[Path]) -> dict[Key, dict[str, int]]:
    """Heads of a layer, width of each and number of weights, by run, from its model.json.

    Runs of another dropout than the baseline's are left out: they differ in more than their heads.
    """
    facts = {run_of(path): read_json(path) for path in files}
    models = {key: ModelSettings.model_validate(each["model"]) for key, each in facts.items()}
    found = {}
    for key, model in models.items():
        if model.dropout == models[key[0], BASE, key[2]].dropout:
            sizes = (model.heads, model.head_width, facts[key]["parameters"])
            found[key] = dict(zip(COLUMNS[4:7], sizes, strict=True))
    return found


@cache
def scores_by_heads(results: Results) -> pd.DataFrame:
    """A model on a test set a row: columns of `COLUMNS`; test by test, fewest heads first.

    `delta`: BLEU − that of the baseline of the seed, in points; empty for the baseline. Its
    interval and p are `over` test sentences, by bootstrap. With several seeds a row without a
    seed follows: means, and interval and p of a paired t-test over seeds.
    """
    scores = Scores(*map(results.files, ("scores", "translations", "references")))
    speeds = gather(results.files("curves"), ["tokens_per_s"]).groupby(KEYS)["tokens_per_s"]
    medians = speeds.median().to_dict()
    models, rows = results.read(model_sizes, "models_by_heads"), []
    for base in (key for key in models if key[1] == BASE):
        others = [key for key in models if key[::2] == base[::2] and key != base]
        for test, *_ in scores.of(base):  # all at once, which is faster
            scores.compare(base, others, test)
    for key, sizes in models.items():
        base = (key[0], BASE, key[2])
        names = dict(zip(KEYS, key, strict=True)) | sizes | {"tokens_per_s": medians[key]}
        for test, bleu, signature in scores.of(key):
            row = names | {"test_set": test, "bleu": bleu, "over": "", "signature": signature}
            if key != base:
                row |= compare(scores, key, base, test) | {"over": SENTENCES}
            rows.append(row)
    found = fill_empty(pd.DataFrame(rows, columns=COLUMNS))
    both = pd.concat([found, *_over_seeds(found)], ignore_index=True)
    task = both.groupby(COLUMNS[:2], sort=False).ngroup()
    return both.assign(task=task).sort_values(
        ["task", "heads_per_layer"], kind="stable", ignore_index=True
    )[COLUMNS]


def _over_seeds(table: pd.DataFrame) -> list[pd.DataFrame]:
    """A row for each model and test set that has several seeds."""
    rows = []
    for _, found in table.groupby(_MODEL, sort=False):
        if len(found) == 1:
            continue
        means = found[["tokens_per_s", "bleu"]].astype(float).mean().to_dict()
        row: dict[str, Any] = found.iloc[0].to_dict() | means | {"seed": "", "over": SEEDS}
        if (found["delta"] != "").all():
            deltas = found["delta"].to_numpy(float)
            tested = paired_t(deltas)
            row |= {"delta": deltas.mean(), "delta_low": tested.low, "delta_high": tested.high}
            row["p"] = tested.p
        rows.append(row)
    return [pd.DataFrame(rows, columns=COLUMNS).astype(object)] if rows else []


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per pair, test set and run."""
    rows = []
    for (pair, test, run), found in table.groupby(_MODEL, sort=False):
        seeds, means = (found[(found["over"] == SEEDS) == over] for over in (False, True))
        heads, width, parameters = found.iloc[0][COLUMNS[4:7]]
        row = {"pair": pair, "test set": test, "run": run, "heads per layer": str(heads)}
        row |= {"width of a head": str(width), "parameters": f"{parameters:,}"}
        row |= {"tokens/s": f"{seeds['tokens_per_s'].astype(float).mean():,.0f}"}
        row |= {"BLEU": mean_sd(seeds["bleu"])} | difference_cells(seeds)
        for mean in means.to_dict("records"):
            row["over seeds"] = interval([mean["delta_low"]], [mean["delta_high"]])
            row["p (t-test)"] = p_value(mean["p"])
        rows.append(row)
    return pd.DataFrame(rows)


def points_by_heads(table: pd.DataFrame) -> pd.DataFrame:
    """A model on a test set a row: columns of `POINTS`; `table` comes from `scores_by_heads`.

    `bleu` is the mean over seeds. `low` and `high` bound what `spread` names: the standard
    deviation over seeds; with one seed the bootstrap interval of the difference to the baseline,
    laid around the baseline, whose own point has none.
    """
    rows = []
    for key, found in table[table["over"] != SEEDS].groupby(_MODEL, sort=False):
        bleu, only = found["bleu"].astype(float), found.iloc[0]
        mean = bleu.mean()
        low, high, spread = mean, mean, ""
        if len(found) > 1:
            low, high = mean - bleu.std(), mean + bleu.std()
            spread = "standard deviation over seeds"
        elif only["delta"] != "":
            low, high = (mean - only["delta"] + only[f"delta_{end}"] for end in ("low", "high"))
            spread = f"bootstrap, 95 %, of the difference to the {BASE}"
        rows.append((*key, only["heads_per_layer"], mean, low, high, spread, len(found)))
    return pd.DataFrame(rows, columns=POINTS)


def _draw(points: pd.DataFrame) -> Figure:
    """A panel per pair and test set: BLEU by heads per layer, each step of the axis a doubling."""
    tasks = list(points.groupby(COLUMNS[:2], sort=False))
    drawing, axes = panels(len(tasks))
    for panel, (names, rows) in zip(axes, tasks, strict=True):
        heads, bleu = rows["heads_per_layer"].astype(int), rows["bleu"]
        reach = [(bleu - rows["low"]).clip(lower=0), (rows["high"] - bleu).clip(lower=0)]
        style = {"color": COLOURS[0], "marker": "o", "capsize": 3, "label": "BLEU"}
        panel.errorbar(heads, bleu, reach, **style)
        level = bleu[rows["run"] == BASE].iloc[0]
        panel.axhline(level, color="black", linestyle="-.", linewidth=0.9, label=BASE)
        panel.set_xscale("log", base=2)
        panel.set_xticks(heads, [str(count) for count in heads])
        panel.xaxis.set_minor_locator(NullLocator())
        panel.set(xlabel="heads per layer", ylabel="BLEU")
        panel.set_title("\n".join(names), loc="left", fontsize="medium")
    legend_above(drawing, axes)
    return drawing
