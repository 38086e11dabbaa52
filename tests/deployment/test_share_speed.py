"""Timing a model without shares of its heads: which heads go, and what is written."""

import csv

import pytest
import torch
from masked_run import DECODE, MODEL, masked_inputs
from script_runner import run_script

from headcount.base.head_values import write_head_values
from headcount.base.settings.decode import SpeedSettings
from headcount.base.settings.heads import AblationSettings
from headcount.deployment import speed
from headcount.deployment.speed import write_share_speed
from headcount.model import machine
from headcount.model.transformer import parameter_count

IMPORTANCE = [0.5, 3.0, 1.0, 0.2, 4.0, 0.1, 2.0, 0.3]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    made = masked_inputs(tmp_path_factory.mktemp("speed"))
    write_head_values(made.text / "importance.csv", MODEL.grid, {"importance": IMPORTANCE})
    return made


@pytest.mark.slow
def test_the_least_important_heads_are_really_removed(inputs, tmp_path, monkeypatch):
    timed = []
    monkeypatch.setattr(speed, "write_times", lambda models, *_: timed.extend(models))
    asked = AblationSettings(timed=[30, 100], normalise="none")
    folders = (inputs.model, inputs.text / "importance.csv", inputs.pair)
    write_share_speed(*folders, asked, SpeedSettings(), DECODE, tmp_path / "x.csv", {})
    assert [(model.name, model.model.grid.size) for model in timed] == [
        ("0", 8),
        ("30", 5),  # 2.4 heads, rounded up: of 0.1, 0.2 and 0.3
        ("100", 0),
    ]
    assert timed[1].model.grid.counts == {"enc_self": (2, 1), "dec_self": (1,), "dec_enc": (1,)}
    assert timed[0].file_bytes == 4 * parameter_count(inputs.model.load())


@pytest.mark.slow
def test_the_script_writes_a_measurement_a_row(inputs, tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "use_threads", torch.set_num_threads)
    flags = ["--model", inputs.model.path, "--bpe", inputs.pair.path]
    flags += [
        "--out",
        tmp_path / "speed.csv",
        "--importance",
        inputs.text / "importance.csv",
        "--timed",
        "[50]",
        "--beam",
        2,
    ]
    flags += ["--speed-sentences", 2, "--speed-repeats", 2, "--speed-batch-sizes", "[2]"]
    assert run_script("share_speed", [*flags, "--max-length-extra", 2]) == 0
    rows = list(csv.DictReader((tmp_path / "speed.csv").open()))
    assert len(rows) == 2 * 2 * 2  # models, phases, repeats
    assert {(row["model"], row["heads_left"]) for row in rows} == {("0", "8"), ("50", "4")}
    assert all(float(row["seconds"]) > 0 and row["sentences"] == "2" for row in rows)
