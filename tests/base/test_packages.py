"""Packages of an extra, and what is told where one lacks."""

import sys

import pytest

from headcount.base.errors import EnvironmentFault
from headcount.base.packages import optional_package

REMEDY = "run: pip install -e '.[parse]'"


def test_what_is_installed_is_imported():
    assert optional_package("pytest", "tests", REMEDY) is pytest


def test_what_lacks_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "stanza", None)  # as where the extra is not installed
    told = r"^trees: expected the package stanza, found it not installed; run: pip install -e '\."
    with pytest.raises(EnvironmentFault, match=told) as fault:
        optional_package("stanza", "trees", REMEDY)
    assert fault.value.exit_code == 3


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("import headcount.none", r"No module named 'headcount\.none'"),
        ("raise ImportError('too old')", "too old"),
    ],
)
def test_a_package_that_lacks_one_of_its_own_is_not_called_missing(
    tmp_path, monkeypatch, line, reason
):
    (tmp_path / "half_there.py").write_text(line)
    monkeypatch.syspath_prepend(tmp_path)
    told = rf"package half_there, found that it cannot be imported \({reason}\); run: pip"
    with pytest.raises(EnvironmentFault, match=told):
        optional_package("half_there", "trees", REMEDY)
