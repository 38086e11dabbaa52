"""Readable cells, and tables as files."""

import json
import math

import numpy as np
import pandas as pd
import pytest

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
