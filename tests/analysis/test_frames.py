"""Result files as frames, and functions whose parameters name what they need."""

from typing import Annotated

import numpy as np
import pandas as pd
import pytest

from headcount.analysis.frames import Data, read_csv, run_of, with_paper
from headcount.analysis.inputs import INPUTS
from headcount.base.errors import UserError


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
