"""Modules of the workflow, which is no package, for tests that call them."""

import importlib
from types import ModuleType

from project_copy import ROOT


def load(monkeypatch, name: str) -> ModuleType:
    """Return the module of that name, in the project's folder until the test ends."""
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT / "workflow"))
    return importlib.import_module(name)
