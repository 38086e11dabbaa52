"""Result files as frames, readable cells, and tables as files."""

import json
import math
from typing import Annotated

import numpy as np
import pandas as pd
import pytest

from headcount.analysis.frames import Data, read_csv, run_of, with_paper
from headcount.analysis.inputs import INPUTS
from headcount.analysis.outputs import Output
from headcount.analysis.writer import (
    FORMATS,
    Text,
    cell,
    p_value,
    readable,
    readable_table,
    write_table,
)
from headcount.base.errors import UserError

NAN = math.nan


def output(**fields):
    base = {"name": "t", "module": "m", "chapter": "c", "form": "table", "title": "T"}
    return Output(**base, function="f", **fields)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"first": "a"}, "1"),
        ({"mean": "a", "digits": 1}, "2.5"),
        ({"mean_sd": "a", "sign": True}, "+2.50 ± 2.12"),  # 1 and 4: deviation 3 / √2
        ({"mean_sd": "a", "where": "run == 'x'"}, "1.00"),
        ({"mean_range": "a"}, "2.50 (1.00 to 4.00)"),
        ({"mean": "low", "per": "run"}, "0.00"),  # x has −1 and 1, y nothing
        ({"mean_significant": "small"}, "0.0123"),
        ({"mean_count": "a"}, "2.5"),
        ({"percent": "small", "digits": 1}, "1.2 %"),
        ({"sum": "a"}, "5"),
        ({"count": "run"}, "2"),
        ({"text": "run"}, "x, y"),
        ({"interval": ["low", "a"]}, "-1.00 to +1.00"),
        ({"bounds": ["a", "low", "a"], "digits": 1}, "1.0 (-1.0 to 1.0)"),
        ({"p": "small"}, "0.012"),
        ({"mean_sd": "a", "where": "run == 'none'"}, "–"),
    ],
)
def test_formats(spec, expected):
    columns = {"run": ["x", "x", "y"], "a": [1.0, NAN, 4.0], "low": [-1.0, 1.0, NAN]}
    frame = pd.DataFrame(columns | {"small": [0.0123, NAN, NAN]})
    assert cell(frame, spec) == expected


def test_every_format_copes_with_nothing_known():
    nothing = pd.Series([NAN, NAN])
    width = {"interval": 2, "bounds": 3}
    for name, function in FORMATS.items():
        assert function(*[nothing] * width.get(name, 1)) == ("0" if name == "count" else "–")
    values = [1234567, 3.0, 2 / 3, 12.345, NAN, None, "a", True]
    assert list(map(readable, values)) == ["1234567", "3", "0.667", "12.35", "–", "–", "a", "True"]


@pytest.mark.parametrize(
    ("p", "expected"),
    [(0.0497, "0.0497"), (0.0502, "0.050"), (0.05, "0.050"), (0.2, "0.20"), (0.0004, "< 0.001")],
)
def test_p_values_stay_on_their_side_of_the_level(p, expected):
    assert p_value(p) == expected


def test_a_row_for_each_group():
    frame = pd.DataFrame({"run": ["b", "a", "b"], "seed": [1, 1, 2], "score": [30.0, 20.0, 31.0]})
    columns = {"BLEU": {"mean_sd": "score"}, "p": {"p": "none", "optional": True}}
    shown = readable_table(output(rows=["run"], columns=columns), frame.assign(none=NAN))
    assert shown.to_numpy().tolist() == [["b", "30.50 ± 0.71"], ["a", "20.00"]]
    assert list(shown) == ["run", "BLEU"]


def test_four_files_and_their_numbers(tmp_path):
    frame = pd.DataFrame({"run": ["a", "b|c"], "score": [1 / 3, 1234567.0], "p": [NAN, 1e-4]})
    text = Text("A caption, 5 % of a_b.", [], ["A note."])
    write_table(output(csv={"score": "bleu"}), frame, text, tmp_path, {"seed": 1})
    assert (tmp_path / "t.csv").read_text() == "run,bleu,p\na,0.3333333333,\nb|c,1234567,0.0001\n"
    lines = (tmp_path / "t.md").read_text().splitlines()
    assert lines[0] == "A caption, 5 % of a_b." and r"b\|c" in lines[-1]
    latex = (tmp_path / "t.tex").read_text()
    assert r"\caption{A caption, 5 \% of a\_b. A note.}" in latex and "{lrr}" in latex
    page = json.loads((tmp_path / "t.json").read_text())
    assert page["rows"] == [["a", "0.333", "–"], ["b|c", "1234567", "0.0001"]]
    assert page["provenance"] == {"seed": 1} and page["notes"] == ["A note."]


def test_cells_cannot_escape(tmp_path):
    frame = pd.DataFrame({"a|b_c": ["<script>x</script>", r"\input{x} & 50 % | $y$" + "\nz"]})
    write_table(output(), frame, Text("A <b> & {c}", [], []), tmp_path, {})
    markdown = (tmp_path / "t.md").read_text()
    assert "<" not in markdown and r"\| $y$ z" in markdown
    latex = (tmp_path / "t.tex").read_text()
    assert r"\input" not in latex and r"\& 50 \% | \$y\$" in latex


@pytest.mark.parametrize("frame", [{"score": [1.0, np.inf]}, {"score": []}])
def test_infinite_numbers_and_empty_tables_are_refused(tmp_path, frame):
    with pytest.raises(UserError, match="t: "):
        write_table(output(), pd.DataFrame(frame), Text("", [], []), tmp_path, {})
    assert not list(tmp_path.iterdir())


def write(folder, run, text, name="importance.csv"):
    path = folder / "heads" / "synthetic.en-xx" / run / "seed2" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_files_of_runs_become_one_frame(tmp_path):
    paths = [
        write(tmp_path, "b", "layer,value\n0,1.5\n1,\n"),
        write(tmp_path, "a", "layer,value\n"),
    ]
    paths.append(write(tmp_path, "c", "layer,value\n0,2\n"))
    frame = read_csv(paths)
    assert list(frame) == ["pair", "run", "seed", "layer", "value"]
    assert frame["run"].tolist() == ["b", "b", "c"] and set(frame["seed"]) == {2}
    assert frame["value"].tolist()[::2] == [1.5, 2] and np.isnan(frame["value"][1])
    assert list(read_csv([], ("layer", "value"))) == ["pair", "run", "seed", "layer", "value"]


@pytest.mark.parametrize("text", ["layer\n0\n", "layer,value\n0,nan\n", "layer,value\n0,-inf\n"])
def test_faults_of_a_file_name_it(tmp_path, text):
    path = write(tmp_path, "a", text)
    with pytest.raises(UserError, match=str(path)):
        read_csv([path], ("layer", "value"))


def test_a_file_without_the_rows_that_it_must_have(tmp_path):
    path = write(tmp_path, "a", "layer,value\n0,1\n")
    with pytest.raises(UserError, match=str(path)):
        read_csv([path], rows="layer == 1")
    with pytest.raises(UserError, match="x.csv"):
        run_of(tmp_path / "x.csv")


calls = []


def shared(importance: pd.DataFrame) -> float:
    calls.append("shared")
    return importance["value"].sum()


def scaled(total: Annotated[float, shared], factor: int, settings: dict, shift: int = 1) -> tuple:
    return total * factor + shift, settings["importance"]


def test_parameters_name_kinds_settings_arguments_and_other_functions(tmp_path):
    rows = "kind,layer,head,statistic,value\nenc_self,0,0,importance,2\nenc_self,0,1,importance,3\n"
    data = Data({"importance": [write(tmp_path, "a", rows)]}, {"importance": "settings"})
    calls.clear()
    assert data.call(scaled, {"factor": 10, "unused": 1}) == (51, "settings")
    assert data.call(scaled, {"factor": 2, "shift": 0}) == (10, "settings")
    assert calls == ["shared"]  # computed once
    with pytest.raises(TypeError, match="factor"):
        data.call(scaled)


KINDS = ["relevance", "pruned_speed", "areas", "profiles", "share_speed", "training", "kept"]


@pytest.mark.parametrize("kind", KINDS)
def test_files_with_a_header_alone_are_refused(tmp_path, kind):
    path = write(tmp_path, "a", ",".join([*INPUTS[kind].columns, "index"]) + "\n")
    with pytest.raises(UserError, match=str(path)):
        Data({kind: [path]}, {}).load(kind)


def test_a_scored_kind_has_metric_and_score(tmp_path, monkeypatch):
    monkeypatch.setitem(INPUTS, "ablation", INPUTS["ablation"]._replace(columns=(), rows=""))
    path = write(tmp_path, "a", "test_set,bleu\ntest,31.5\n", "ablation.csv")
    frame = Data({"ablation": [path]}, {}).load("ablation")
    assert frame.iloc[0][["metric", "score"]].tolist() == ["bleu", 31.5]


def test_rows_of_a_paper_follow_ours():
    ours = pd.DataFrame({"run": ["a"], "seed": [1], "value": [2.0]})
    both = with_paper(ours, pd.DataFrame({"run": ["x"], "value": [3.0], "extra": [1]}))
    assert both["source"].tolist() == ["ours", "paper"]
    assert list(both) == ["run", "seed", "value", "source"]
    assert np.isnan(both["seed"][1]) and both["value"].tolist() == [2, 3]
