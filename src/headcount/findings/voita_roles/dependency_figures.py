"""Voita's Figures 3 and 4: where dependents stand, and how well heads find them."""

from collections.abc import Collection, Mapping
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from headcount.base.errors import UserError
from headcount.findings import exhibits
from headcount.findings.figures import (
    COLOURS,
    PAGE,
    Drawn,
    colours,
    draw_legend,
    note,
    panels,
    title_words,
)
from headcount.findings.masked_training import collapse_notes, collapse_words, collapsed_in_training
from headcount.findings.published import voita
from headcount.findings.published.numbers import with_printed
from headcount.findings.results import KEYS, Results
from headcount.findings.scores import Key
from headcount.findings.setting import describe_setting, of_one_training
from headcount.findings.voita_roles.dependency_scores import DOBJ, NO_TREES, best_heads
from headcount.findings.voita_roles.labels import SHOWN, arrow
from headcount.findings.voita_roles.measured import all_roles, describe_roles

POSITION_COLUMNS = ["pair", "treebank", "relation", "offset", "count", "share", "source"]
SCORE_COLUMNS = ["pair", "run", "treebank", "relation", "direction", "accuracy", "low", "high"]
SCORE_COLUMNS += ["baseline", "source"]
_FARTHEST = 7  # words; as far as the paper draws


@exhibits.figure(
    "voita_fig3", needs=("roles",), uses=("pruned_heads", "trees"), beside="voita_table1"
)
def fig3(results: Results) -> Drawn:
    """Figure 3: where dependents stand."""
    relations = results.settings["roles"].relations
    counted = results.files("trees")
    points = dependent_positions(counted, relations)
    trees = "over every sentence of each treebank that the models can read, however many of them "
    trees = f"counted {trees}heads are measured on" if counted else NO_TREES
    caption = (
        "Where dependents stand, in words before (−) or after (+) what they depend on; shares of "
        "all arcs of a relation. A high peak makes the positional baseline hard to beat."
    )
    notes = (
        f"Ours are {trees}. Positions farther than seven are in the numbers, not in the drawing.",
        DOBJ,
        f"{voita.SOURCE}, Figure 3: predicted trees of WMT, for nsubj, obj, amod and advmod.",
        voita.READ_OFF,
        *describe_setting(results, all_roles(results)),
    )
    return Drawn(draw_positions(points, relations), points, caption, notes)


@exhibits.figure(
    "voita_fig4",
    needs=("roles",),
    uses=("pruned_heads", "masks", "curves"),
    beside="voita_table1",
)
def fig4(results: Results) -> Drawn:
    """Figure 4: accuracy of the best heads."""
    points = score_points(best_heads(results))
    collapsed = collapsed_in_training(results)
    caption = (
        "Accuracy of the best encoder head for each relation and direction, on the first treebank "
        "of each model. It says something where it is well above the positional baseline (thick "
        "lines)."
    )
    if _are_many(points):
        bars = ("Thin bars: from the lowest to the highest seed of a run, whose mean is drawn.",)
    else:
        bars = ("Thin bars: 95 % Wilson interval.", of_one_training("trials"))
    notes = (
        "" if (points["source"] == "ours").any() else f"Ours are {NO_TREES}.",
        *bars,
        "Thick lines: positional baseline on the same trials.",
        DOBJ,
        f"Below: {voita.SOURCE}, Figure 4, one baseline for both directions.",
        voita.READ_OFF,
        *collapse_notes(collapsed),
        *describe_roles(results),
    )
    return Drawn(draw_scores(points, collapsed), points, caption, notes)


def dependent_positions(trees: list[Path], relations: list[str]) -> pd.DataFrame:
    """Figure 3: how often dependents stand at each relative position: `POSITION_COLUMNS`.

    `trees` are the .csv files that scripts/trees.py wrote, `<pair>/trees/<treebank>.csv`; the
    paper's rows follow, for those of the relations that it has. Shares are of all arcs of a
    relation.
    """
    frames = []
    for path in trees:
        table = pd.read_csv(path)
        if list(table.columns) != ["relation", "offset", "count"]:
            raise UserError(f"{path}: expected relation, offset, count; make the file again")
        table = table[table["relation"].isin(relations)]
        total = table.groupby("relation")["count"].transform("sum")
        names = {"pair": path.parent.parent.name, "treebank": path.stem, "source": "ours"}
        frames.append(table.assign(share=table["count"] / total, **names))
    paper = voita.table("figure3").rename(columns={"value": "share"})
    paper = paper[paper["relation"].isin(relations)]
    frames.append(paper.assign(pair="wmt", treebank="wmt", count="", source="paper"))
    return pd.concat(frames, ignore_index=True)[POSITION_COLUMNS]


def draw_positions(points: pd.DataFrame, relations: list[str]) -> Figure:
    """A panel for each relation: bars by relative position, treebanks side by side.

    Without any point a figure that says so.
    """
    if points.empty:
        return note(f"Neither trees here nor the paper have {', '.join(relations)}.")
    # The same treebank cut for two pairs has the same words.
    seen = points[["pair", "treebank", "source"]].drop_duplicates().drop_duplicates("treebank")
    names = list(seen.itertuples(index=False))
    shades, width = colours(len(names)), 0.85 / len(names)
    figure, axes = panels(len(relations), columns=2, height=2.5, share=True)
    for panel, relation in zip(axes, relations, strict=True):
        near = points[(points["relation"] == relation) & (points["offset"].abs() <= _FARTHEST)]
        for place, (pair, treebank, _) in enumerate(names):
            arcs = near[(near["pair"] == pair) & (near["treebank"] == treebank)]
            shift = (place - (len(names) - 1) / 2) * width
            panel.bar(arcs["offset"] + shift, arcs["share"], width, color=shades[place])
        panel.set_title(SHOWN.get(relation, relation), loc="left")
        panel.set_axisbelow(True)
        panel.set_xlim(-_FARTHEST - 0.6, _FARTHEST + 0.6)
        panel.set_xticks(range(-_FARTHEST, _FARTHEST + 1))
        panel.tick_params(labelsize="small")
        panel.axvline(0, color="black", linewidth=0.6)
        panel.set_xlabel("position of the dependent (words)", fontsize="small")
        panel.set_ylabel("share of arcs", fontsize="small")
    patches = {
        name.treebank + " (paper)" * (name.source == "paper"): Patch(color=shade)
        for shade, name in zip(shades, names, strict=True)
    }
    draw_legend(figure, patches)
    return figure


def score_points(table: pd.DataFrame) -> pd.DataFrame:
    """Figure 4: the best head of each model on its first treebank, then the paper's.

    `table` comes from `best_heads`. Several seeds: a row each.
    """
    ours = table[table["source"] == "ours"]
    first = ours.groupby(KEYS, sort=False)["treebank"].transform("first")
    ours = ours[ours["treebank"] == first].reindex(columns=[*SCORE_COLUMNS, "seed"])
    return with_printed(ours, voita.dependency_scores_by_pair().assign(treebank="wmt"))


def draw_scores(points: pd.DataFrame, collapsed: Collection[Key]) -> Figure:
    """A panel for ours and one for the paper: bars by relation and direction, models abreast.

    Where there are more models than colours that can be told apart, runs over their seeds. Bars of
    models that `collapsed`, or of runs all of whose models did, are hollow.
    """
    sources = [source for source in ("ours", "paper") if source in set(points["source"])]
    tests = list(points[["relation", "direction"]].drop_duplicates().itertuples(index=False))
    told = dict.fromkeys(collapsed, "collapsed")
    if _are_many(points):
        told, points = _collapsed_of_runs(points, collapsed), _over_seeds(points)
    keys = max(points[points["source"] == source].groupby(KEYS).ngroups for source in sources)
    height = 3.4 + 0.2 * max(0, -(-(keys + 1) // 2) - 4)  # its key has two columns
    size = (min(PAGE, max(6.5, 0.95 * len(tests) + 1)), height * len(sources) + 0.3)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(sources), squeeze=False).flat
    for panel, source in zip(axes, sources, strict=True):
        _bars(panel, points[points["source"] == source], tests, told)
        words = "this experiment" if source == "ours" else voita.SOURCE
        panel.set_title(words, loc="left", fontsize="medium")
    return figure


def _are_many(points: pd.DataFrame) -> bool:
    """Whether our models are too many to be told apart, and runs over seeds are fewer."""
    ours = points[points["source"] == "ours"]
    runs, models = (ours.groupby(keys).ngroups for keys in (KEYS[:2], KEYS))
    return models > len(COLOURS) and runs < models


def _collapsed_of_runs(points: pd.DataFrame, collapsed: Collection[Key]) -> dict[Key, str]:
    """Which of each run's models collapsed, in words, by pair and run, with no seed."""
    ours = points[points["source"] == "ours"]
    return {
        (pair, run, ""): words
        for pair, rows in ours.groupby("pair", sort=False)
        for run, words in collapse_words(collapsed, rows).items()
    }


def _over_seeds(points: pd.DataFrame) -> pd.DataFrame:
    """Our runs, with no seed: the mean of their accuracies, between the lowest and the highest."""
    ours = points["source"] == "ours"
    groups = points[ours].groupby(["pair", "run", "relation", "direction"], sort=False)
    accuracy = groups["accuracy"]
    means = {"accuracy": accuracy.mean(), "low": accuracy.min(), "high": accuracy.max()}
    means["baseline"] = groups["baseline"].mean()
    found = pd.DataFrame(means).reset_index().assign(seed="", source="ours")
    return pd.concat([found, points[~ours]], ignore_index=True)


def _bars(panel: Axes, points: pd.DataFrame, tests: list, collapsed: Mapping[Key, str]) -> None:
    places = {tuple(test): place for place, test in enumerate(tests)}
    models = list(points.groupby(KEYS, sort=False))
    width, shown = 0.8 / len(models), colours(len(models))
    for number, ((pair, run, seed), scores) in enumerate(models):
        keys = zip(scores["relation"], scores["direction"], strict=True)
        at = [places[key] + (number - (len(models) - 1) / 2) * width for key in keys]
        style = {"color": shown[number]}
        style["label"] = title_words(pair, run, seed=seed)
        if words := collapsed.get((pair, run, seed)):
            style["label"] += f" ({words})"
        if words == "collapsed":  # all that is drawn here
            style |= {"fill": False, "edgecolor": style.pop("color"), "linewidth": 1.4}
        middle = scores["accuracy"].astype(float)
        panel.bar(at, middle, 0.9 * width, **style)
        if (scores["low"] != "").all():
            spread = [middle - scores["low"].astype(float), scores["high"].astype(float) - middle]
            panel.errorbar(at, middle, spread, fmt="none", ecolor="black", linewidth=0.8)
        for place, value in zip(at, scores["baseline"], strict=True):
            line = [place - width / 2, place + width / 2]
            panel.plot(line, [value] * 2, color="black", linewidth=2, label="_")
    panel.plot([], [], color="black", linewidth=2, label="positional baseline")
    names = [f"{SHOWN.get(test.relation, test.relation)}\n{arrow(*test)}" for test in tests]
    panel.set_xticks(range(len(tests)), names, fontsize="small")
    panel.grid(axis="x", visible=False)
    panel.set_ylim(0, 1.05)
    panel.margins(x=0.01)
    panel.set_axisbelow(True)
    panel.set_ylabel("accuracy")
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "frameon": False}
    panel.legend(fontsize="small", ncols=2, **below)
