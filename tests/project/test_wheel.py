"""The wheel, in a folder where the repository is not."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from project_copy import ROOT
from small_run import SmallRun, segment

import headcount

pytestmark = pytest.mark.slow

USE = """
import pkgutil, sys
import headcount
print(headcount.load("translator").translate(["the man sees a dog ."]))
for path in map(str, sys.argv[1:]):
    for module in pkgutil.walk_packages([path]):
        __import__(module.name)
print(*sorted(getattr(module, "__file__", None) or "" for module in [*sys.modules.values()]))
"""


def pip(*words: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """A folder with what the wheel installs."""
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT / "src", folder / "project/src")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "project")
    pip("wheel", "--no-deps", "--no-build-isolation", "-w", folder, folder / "project")
    pip("install", "--no-deps", "--target", folder / "site", *folder.glob("*.whl"))
    return folder / "site"


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    """Files of the packages, without those that programs leave."""
    command = ["git", "ls-files", "--full-name", "src"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name.removeprefix("src/") for name in listed.splitlines()]


def test_all_files_of_the_packages_come_along(site, tracked):
    assert len(tracked) > 200 and [name for name in tracked if not (site / name).exists()] == []


def test_a_model_translates_and_every_module_is_imported_without_the_repository(
    site, tracked, tmp_path
):
    bpe = segment(tmp_path / "text")
    SmallRun(bpe).finish(tmp_path / "run", tmp_path / "state")
    model = headcount.load(tmp_path / "run/model", bpe)
    model.save(tmp_path / "empty/translator")
    done = subprocess.run(
        [sys.executable, "-c", USE, site],
        cwd=tmp_path / "empty",
        env=os.environ | {"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    translation, files = done.stdout.splitlines()
    assert translation == str(model.translate(["the man sees a dog ."]))
    assert files.count(f"{site}/") == sum(name.endswith(".py") for name in tracked)
    assert f"{ROOT}/src/" not in files
