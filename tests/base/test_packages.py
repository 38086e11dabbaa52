"""Packages of an extra, and the message where one is missing."""

import sys

import pytest

from headcount.base.errors import EnvironmentFault, optional_package

REMEDY = "run: pip install -e ."


def test_an_installed_package_is_imported():
    assert optional_package("pytest", "tests", REMEDY) is pytest


@pytest.mark.parametrize("line", ["import headcount.none", "raise ImportError('too old')", None])
def test_a_missing_and_a_broken_package_have_their_own_reasons(tmp_path, monkeypatch, line):
    if line:
        (tmp_path / "half_there.py").write_text(line)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "half_there", raising=False)
    reason = "too old" if line and "old" in line else "No module named .*"
    with pytest.raises(EnvironmentFault, match=rf"half_there \({reason}\); {REMEDY}"):
        optional_package("half_there", "trees", REMEDY)
