"""Packages of an extra, and the message where one is missing."""

import sys

import pytest

from headcount.base import errors
from headcount.base.errors import EnvironmentFault, optional_package, require_extra

REMEDY = "run: pip install -e ."


@pytest.mark.parametrize("line", ["import headcount.none", "raise ImportError('too old')", None])
def test_a_missing_and_a_broken_package_have_their_own_reasons(tmp_path, monkeypatch, line):
    if line:
        (tmp_path / "half_there.py").write_text(line)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "half_there", raising=False)
    reason = "too old" if line and "old" in line else "No module named .*"
    with pytest.raises(EnvironmentFault, match=rf"half_there \({reason}\); {REMEDY}"):
        optional_package("half_there", "trees", REMEDY)


@pytest.mark.parametrize(
    ("place", "remedy"),
    [("src", r"-e '\.\[report\]'"), ("site-packages", r"'headcount\[report\]'")],
)
def test_the_advice_is_for_a_clone_or_for_an_installed_wheel(tmp_path, monkeypatch, place, remedy):
    (tmp_path / "src").mkdir()
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as where it is not installed
    module = tmp_path / "src" if place == "src" else tmp_path / "lib/site-packages"
    monkeypatch.setattr(errors, "__file__", str(module / "headcount/base/errors.py"))
    require_extra("report", ["scipy"])
    with pytest.raises(EnvironmentFault, match=f"package matplotlib.*; run: pip install {remedy}$"):
        require_extra("report", ["scipy", "matplotlib"])
