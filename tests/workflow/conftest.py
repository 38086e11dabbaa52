"""Plans of experiments in a folder with settings alone."""

import shutil
from collections.abc import Callable

import pytest
from project_copy import ROOT
from workflow_modules import load


@pytest.fixture
def plan_of(monkeypatch, tmp_path) -> Callable:
    """Return a function that plans an experiment from its text, among the project's corpora.

    Texts of other files in config/ are given by their names.
    """
    module = load(monkeypatch, "plan.plan")
    (tmp_path / "config").mkdir()
    shutil.copy(ROOT / "config" / "corpora.yaml", tmp_path / "config")
    monkeypatch.chdir(tmp_path)

    def plan(experiment: str, dry: bool = False, **texts: str):
        for name, text in {"mine": experiment, **texts}.items():
            (tmp_path / "config" / f"{name}.yaml").write_text(text)
        return module.Plan("mine", dry)

    return plan
