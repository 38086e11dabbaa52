"""Voita's Figures 3 and 4: where dependents stand, and how well heads find them."""

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from headcount.base.errors import UserError
from headcount.findings.figures import COLOURS, colours
from headcount.findings.panels import note, panels
from headcount.findings.published import voita
from headcount.findings.voita_roles.labels import SHOWN, arrow

POSITION_COLUMNS = ["pair", "treebank", "relation", "offset", "count", "share", "source"]
SCORE_COLUMNS = ["pair", "run", "treebank", "relation", "direction", "accuracy", "low", "high"]
SCORE_COLUMNS += ["baseline", "source"]
_FARTHEST = 7  # words; as far as the paper draws


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
    paper = voita.dependent_positions().rename(columns={"value": "share"})
    paper = paper[paper["relation"].isin(relations)]
    frames.append(paper.assign(pair="wmt", treebank="wmt", count="", source="paper"))
    return pd.concat(frames, ignore_index=True)[POSITION_COLUMNS]


def draw_positions(points: pd.DataFrame, relations: list[str]) -> Figure:
    """A panel for each relation: bars by relative position, treebanks side by side.

    Without any point a figure that says so.
    """
    if points.empty:
        return note(f"Neither trees here nor the paper have {', '.join(relations)}.")
    names = list(points[["pair", "treebank", "source"]].drop_duplicates().itertuples(index=False))
    seen = {}  # the same treebank cut for two pairs has the same words
    for name in names:
        seen.setdefault(name.treebank, name)
    shades = dict(zip(seen, colours(len(seen)), strict=True))
    figure, axes = panels(len(relations), columns=2, height=2.5)
    for panel, relation in zip(axes, relations, strict=True):
        for place, name in enumerate(seen.values()):
            arcs = points[(points["relation"] == relation) & (points["treebank"] == name.treebank)]
            arcs = arcs[(arcs["pair"] == name.pair) & (arcs["offset"].abs() <= _FARTHEST)]
            width = 0.85 / len(seen)
            shift = (place - (len(seen) - 1) / 2) * width
            panel.bar(arcs["offset"] + shift, arcs["share"], width, color=shades[name.treebank])
        panel.set_title(SHOWN.get(relation, relation), loc="left")
        _mark_positions(panel)
    patches = [
        Patch(color=shades[key], label=f"{key} (paper)" if name.source == "paper" else key)
        for key, name in seen.items()
    ]
    ncols = min(4, len(seen))
    figure.legend(handles=patches, loc="outside upper center", ncols=ncols, frameon=False)
    return figure


def score_points(table: pd.DataFrame) -> pd.DataFrame:
    """Figure 4: the best head of each model on its first treebank, then the paper's.

    `table` comes from `dependency_table`. Several seeds: a row each.
    """
    ours = table[table["source"] == "ours"]
    first = ours.groupby(["pair", "run", "seed"], sort=False)["treebank"].transform("first")
    ours = ours[ours["treebank"] == first].reindex(columns=[*SCORE_COLUMNS, "seed"])
    return pd.concat([ours, _printed()], ignore_index=True).fillna("")


def draw_scores(points: pd.DataFrame) -> Figure:
    """A panel for ours and one for the paper: bars by relation and direction, models abreast."""
    sources = [source for source in ("ours", "paper") if source in set(points["source"])]
    tests = list(points[["relation", "direction"]].drop_duplicates().itertuples(index=False))
    size = (max(6.5, 0.95 * len(tests) + 1), 3.0 * len(sources) + 0.3)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(sources), squeeze=False).flat
    for panel, source in zip(axes, sources, strict=True):
        _bars(panel, points[points["source"] == source], tests)
        panel.set_title("this experiment" if source == "ours" else voita.source(), loc="left")
    return figure


def _mark_positions(panel: Axes) -> None:
    panel.set_axisbelow(True)
    panel.set_xlim(-_FARTHEST - 0.6, _FARTHEST + 0.6)
    panel.set_xticks(range(-_FARTHEST, _FARTHEST + 1), minor=False)
    panel.tick_params(labelsize="small")
    panel.axvline(0, color="black", linewidth=0.6)
    panel.set_xlabel("position of the dependent", fontsize="small")
    panel.set_ylabel("share", fontsize="small")


def _bars(panel: Axes, points: pd.DataFrame, tests: list) -> None:
    places = {tuple(test): place for place, test in enumerate(tests)}
    models = list(points.groupby(["pair", "run", "seed"], sort=False))
    width = 0.8 / len(models)
    for number, ((pair, run, seed), scores) in enumerate(models):
        keys = zip(scores["relation"], scores["direction"], strict=True)
        at = [places[key] + (number - (len(models) - 1) / 2) * width for key in keys]
        label = ", ".join(filter(None, (pair, run, f"seed {seed}" if seed else "")))
        colour = COLOURS[number % len(COLOURS)]
        panel.bar(at, scores["accuracy"].astype(float), 0.9 * width, color=colour, label=label)
        if (scores["low"] != "").all():
            middle = scores["accuracy"].astype(float)
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
    panel.set_axisbelow(True)
    panel.set_ylabel("accuracy")
    panel.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1, 1), frameon=False)


def _printed() -> pd.DataFrame:
    scores = voita.dependency_scores_by_pair().rename(columns={"value": "accuracy"})
    keys = ["relation", "direction"]
    baseline = scores[scores["pair"] == "baseline"].set_index(keys)["accuracy"].rename("baseline")
    rows = scores[scores["pair"] != "baseline"].join(baseline, on=keys)
    return rows.assign(run="", seed="", treebank="wmt", low="", high="", source="paper")
