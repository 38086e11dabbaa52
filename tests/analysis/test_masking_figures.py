"""Scores of models with masked heads, and how the renderer draws them."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from headcount.analysis.captions import group_size, intervals, shared_notes
from headcount.analysis.figures.render import draw
from headcount.analysis.frames import Data
from headcount.analysis.outputs import Output
from headcount.analysis.scores import DRAWS, SEEDS
from headcount.analysis.tables.headmask import importance as headmask_masking
from headcount.analysis.tables.headmask.importance import CHANGE, groups
from headcount.base.settings.training_runs import RunSettings

COLUMNS = ["run", "seed", "ranking", "order", "index", "draw", "heads_masked", "score", "delta"]


def _masking(*rows: tuple) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=COLUMNS).assign(pair="p", test_set="t")
    return table.assign(delta_low=table["delta"] - 1, delta_high=table["delta"] + 1)


GROUPS = _masking(
    ("baseline", 1, "own", "none", 0, None, 0, 30.0, 0.0),
    ("baseline", 1, "own", "group", 1, None, 3, 20.0, -10.0),
    ("baseline", 1, "own", "group", 2, None, 2, 29.0, -1.0),
    ("baseline", 1, "own", "ascending", 1, None, 2, 29.0, -1.0),
    ("baseline", 1, "own", "random_group", 1, 1, 3, 24.0, -6.0),
    ("baseline", 1, "own", "random_group", 2, 1, 2, 28.0, -2.0),
    ("impt-2", 1, "own", "none", 0, None, 0, 28.0, 0.0),
    ("impt-2", 1, "baseline", "group", 1, None, 3, 5.0, -23.0),
)


def test_groups_are_by_the_own_ranking_and_random_groups_make_one_row():
    points = groups(GROUPS)
    assert points["run"].tolist() == ["baseline"] * 4 + ["impt-2"]
    assert points["order"].tolist() == ["none", "group", "group", "random_group", "none"]
    assert points["index"].tolist() == [0, 1, 2, 0, 0]
    assert points["heads_masked"].tolist() == [0, 3, 2, 3, 0]
    random = points.loc[3]
    assert (random["score"], random["low"], random["high"]) == (26, 24, 28)
    assert points["spread"].tolist() == [CHANGE, CHANGE, CHANGE, DRAWS, CHANGE]
    assert (points["low"][1], points["high"][1]) == (19, 21)
    assert groups(GROUPS, "random-2").empty
    places = headmask_masking.with_places(groups(GROUPS, "baseline"))
    assert places["place"].tolist() == ["none", "1", "2", "random"]
    assert places["edge"].fillna(0).tolist() == [0.5, 0, 0, 2.5]


def test_notes_describe_the_intervals_that_occur() -> None:
    of_groups, shared = groups(GROUPS), shared_notes()
    bars, over_seeds, *others = filter(None, intervals(of_groups.assign(spread=SEEDS, seeds=2)))
    assert SEEDS in bars and "2 seeds" in over_seeds and others == [shared["over_seeds"]]
    bars, *others = filter(None, intervals(of_groups))
    assert CHANGE in bars and DRAWS in bars and others == [shared["one_training"]]
    assert group_size(of_groups) == "2–3"


METHODS = {"random-2": "random", "impt-4": "importance", "impt-2": "importance"}
RUNS = {"baseline": RunSettings(method="baseline")} | {
    name: RunSettings(method=method, heads=int(name[-1])) for name, method in METHODS.items()
}
CURVES = pd.DataFrame({"run": list(RUNS), "score": [4.0, 3, 2, 1]})
CURVES = CURVES.assign(pair="p", test_set="t", order="ascending", heads_masked=1)
LINE = {"mark": "line", "x": "heads_masked", "y": "score"}


def test_every_number_of_masked_heads_has_the_baseline_and_its_runs() -> None:
    parts = headmask_masking.by_number(CURVES, RUNS)
    of_two, of_four = (parts.loc[parts["number"] == f"N = {n}, ", "run"].tolist() for n in (2, 4))
    assert of_two == ["baseline", "random-2", "impt-2"]
    assert of_four == ["baseline", "impt-4"]
    assert headmask_masking.by_number(CURVES[:1], RUNS)["number"].tolist() == [""]


def _drawn(points: pd.DataFrame, given: dict[str, Any], **spec: Any) -> Figure:
    fields = {"name": "f", "chapter": "c", "form": "figure", "title": "T", "function": "f"}
    output = Output(**fields, module=headmask_masking.__name__, needs=list(given), draw=spec)
    data = Data({}, {})
    data._results |= given
    return draw(output, points, data)


def test_curves_have_a_row_of_panels_for_every_number() -> None:
    grid = {"panels": ["number"], "across": "order", "style": "run", "share_y": True}
    figure = _drawn(CURVES, {"trained_runs": RUNS}, frame="by_number", layers=[LINE], **grid)
    shown = [[line.get_label() for line in panel.get_lines()] for panel in figure.axes]
    assert shown == [["baseline", "random-2", "impt-2"], ["baseline", "impt-4"]]
    colours = {line.get_label(): line.get_color() for panel in figure.axes for line in panel.lines}
    assert len(set(colours.values())) == 4
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(RUNS)
    first, second = figure.axes
    assert first.get_ylim() == second.get_ylim()
