"""Measures of one model on its own: values, a stop and a second start, and the report."""

import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from imported_marian import import_marian

import headcount
from headcount.base.errors import EnvironmentFault, UserError
from headcount.library import heads_run
from headcount.library.heads_run import HeadsRun


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """A model with random weights, and 60 pairs."""
    root = import_marian(tmp_path_factory.mktemp("marian"))
    lines = [(root / f"text/train.{side}").read_text().splitlines() for side in ("src", "tgt")]
    return headcount.load(root / "model", root / "bpe", "cpu"), lines


def run_of(opened, out: Path, **more) -> HeadsRun:
    return HeadsRun(opened[0], opened[1], out, **{"sentences": 8} | more)


def test_values_are_those_of_the_model(opened, tmp_path):
    model, sides = opened
    run = run_of(opened, tmp_path, links=["0-0 1p1"] * len(sides[0]))
    run.measure()
    drawn = [[side[n] for n in run.drawn] for side in sides]
    read = pd.read_csv(tmp_path / "importance.csv").pivot(
        index=["kind", "layer", "head"], columns="statistic", values="value"
    )
    expected = model.importance(*drawn).set_index(["kind", "layer", "head"])["value"]
    np.testing.assert_allclose(read["importance"], expected.sort_index(), rtol=1e-4)
    halves = read[["importance_first_half", "importance_second_half"]].mean(axis=1)
    np.testing.assert_allclose(halves, expected.sort_index(), rtol=1e-4)
    removal = pd.read_csv(tmp_path / "removal.csv", keep_default_na=False)
    others = [[side[n] for n in range(len(side)) if n not in run.drawn] for side in sides]
    assert run.apart and len(run.checked) == len(others[0])
    for step in removal.itertuples():
        loss = model.loss(*others, mask=step.heads.split())
        assert step.loss == pytest.approx(loss, rel=1e-5)
        assert step.low <= step.loss_rise <= step.high
        assert step.heads_masked == -(-24 * step.percent // 100)
    weakest = expected.reset_index(drop=True).nsmallest(12).index
    assert set(removal["heads"].iloc[-1].split()) == {model.heads[n] for n in weakest}
    rates = pd.read_csv(tmp_path / "alignment.csv")
    pd.testing.assert_frame_equal(rates, model.alignment(*drawn, ["0-0 1p1"] * 8), rtol=1e-4,
                                  check_dtype=False)  # fmt: skip


def test_a_second_start_measures_what_is_missing(opened, tmp_path, monkeypatch):
    measured, calls = heads_run.measure_importance, []

    def stopped(model, text, settings):
        calls.append(len(text))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return measured(model, text, settings)

    monkeypatch.setattr(heads_run, "measure_importance", stopped)
    monkeypatch.setattr(type(opened[0]), "_has_roles", False)
    with pytest.raises(KeyboardInterrupt):
        run_of(opened, tmp_path, sentences=20).measure()
    again = run_of(opened, tmp_path, sentences=20)
    assert 0 < again.estimate()["importance"] < 60
    again.measure()
    assert calls == [2] * 11  # ten chunks, one of them twice
    assert run_of(opened, tmp_path, sentences=20).estimate() == {}
    whole = run_of(opened, tmp_path / "whole", sentences=20)
    whole.measure()
    files = [tmp_path / name / "importance.csv" for name in ("", "whole")]
    assert files[0].read_bytes() == files[1].read_bytes()
    smaller = opened[0].without(["enc_self.0.0"])
    assert HeadsRun(smaller, opened[1], tmp_path, sentences=20).estimate()  # another model


def test_measures_of_another_text_are_removed_from_the_folder(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(type(opened[0]), "_has_roles", False)
    run_of(opened, tmp_path, links=["0-0"] * len(opened[1][0])).measure()
    (tmp_path / "attention.csv").write_text("of another text")
    (tmp_path / "tables").mkdir()
    run_of(opened, tmp_path).measure()
    left = {path.name for path in tmp_path.iterdir() if path.suffix != ".json"}
    assert left == {"importance.csv", "removal.csv", "parts"}


@pytest.mark.parametrize(("kept", "links"), [(3, None), (5, 4)])
def test_too_few_pairs_or_links_are_refused(opened, tmp_path, kept, links):
    with pytest.raises(UserError, match=f"at least 4, found {kept}, {kept}, {links or kept}"):
        HeadsRun(opened[0], [s[:kept] for s in opened[1]], tmp_path, links and ["0-0"] * links)


def test_a_missing_package_is_named_before_anything_is_measured(opened, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    first = "vl_convert" if find_spec("matplotlib") else "matplotlib"  # whichever is asked first
    with pytest.raises(EnvironmentFault, match=rf"{first} .*headcount\[report\]"):
        opened[0].report(*opened[1], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_report_has_tables_and_an_atlas(opened, tmp_path):
    model, sides = opened
    page = model.report(*sides, tmp_path, links=["0-0"] * len(sides[0]), sentences=12)
    text = page.read_text()
    for title in (
        "Heads that may be removed",
        "Word alignment by cross-attention",
        "Heads of model",
    ):
        assert title in text, title
    data = re.search(r'type="application/json"[^>]*>(.*?)</script>', (
        tmp_path / "atlas.html").read_text(), re.DOTALL)  # fmt: skip
    content = json.loads(data[1])
    (only,) = content["models"]
    assert [head["name"] for head in content["heads"]] == model.heads
    importance = pd.read_csv(tmp_path / "importance.csv").query("statistic == 'importance'")
    np.testing.assert_allclose(only["values"]["importance"], importance["value"], rtol=1e-3)
    assert only["sentences"] and only["roles"]
