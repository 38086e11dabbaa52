"""Other installers, the container and conda, install what the README's first line installs."""

import re
import shlex
import tomllib
from collections import Counter
from itertools import pairwise

import pytest
import yaml
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from project_copy import ROOT

CPU = "https://download.pytorch.org/whl/cpu"
TEXTS = {name: (ROOT / name).read_text() for name in ("README.md", "Containerfile")}
TEXTS["environment.yml"] = (ROOT / "environment.yml").read_text()
ALONE = {  # words that another installer adds to the README's, and words that it leaves out
    "Containerfile": (["--no-cache-dir", "--index-url", CPU], []),
    "environment.yml": ([], ["--no-build-isolation"]),
}


def pip_commands(text: str) -> list[list[str]]:
    """The words behind every `pip install` of the README's first block, or of a Containerfile."""
    if "```" in text:
        text = re.search(r"^```bash\n(.*?)^```", text, re.M | re.S)[1].replace(" && ", "\n")
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    found = (re.match(r"(?:RUN )?pip install (.*)", line) for line in lines)
    return [shlex.split(match[1]) for match in found if match]


def conda_command(text: str) -> list[str]:
    """The words that conda gives to pip, which reads them as lines of a file."""
    (lines,) = (e["pip"] for e in yaml.safe_load(text)["dependencies"] if isinstance(e, dict))
    return [word for line in lines for word in line.split()]


def agrees(name: str, text: str, readme: str) -> bool:
    """Whether an installer's words are the README's, apart from those named in ALONE."""
    wanted = pip_commands(readme)
    given = pip_commands(text) if name == "Containerfile" else [conda_command(text)]
    if name == "environment.yml":
        wanted = wanted[1:]  # conda installs no package by hash
    added, left_out = (Counter(words) for words in ALONE[name])
    return len(given) == len(wanted) and all(
        Counter(mine) - added == Counter(theirs) - left_out
        for mine, theirs in zip(given, wanted, strict=True)
    )


@pytest.mark.parametrize("name", ALONE)
def test_another_installer_has_the_commands_of_the_readme(name):
    assert agrees(name, TEXTS[name], TEXTS["README.md"])


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize(("old", "new"), [
    ("[workflow]", "[report]"), ("locks/versions.txt", "locks/test.txt"), ("-c ", "-r "),
])  # fmt: skip
def test_a_change_of_one_alone_is_noticed(name, old, new):
    for changed in (name, "README.md"):
        text = TEXTS | {changed: TEXTS[changed].replace(old, new)}
        assert text != TEXTS and not agrees(name, text[name], text["README.md"])


def test_conda_takes_a_python_a_lock_and_an_extra_that_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    environment = yaml.safe_load(TEXTS["environment.yml"])
    (python,) = (entry for entry in environment["dependencies"] if str(entry).startswith("python="))
    assert Version(python.partition("=")[2]) in SpecifierSet(project["requires-python"])
    for before, word in pairwise(conda_command(TEXTS["environment.yml"])):
        if before == "-c":
            assert (ROOT / word).stat().st_size > 0
        elif before == "-e":
            assert re.fullmatch(r"\.\[(\w+)\]", word)[1] in project["optional-dependencies"]


def test_the_check_by_conda_makes_this_environment_and_runs_in_it():
    check = yaml.safe_load((ROOT / ".github/workflows/conda.yml").read_text())
    made, run = (step["run"].split() for step in check["jobs"]["tiny"]["steps"] if "run" in step)
    assert made[1:] == ["env", "create", "--file", "environment.yml"]
    name = yaml.safe_load(TEXTS["environment.yml"])["name"]
    assert run[2:4] == ["--name", name] and run[-1] == "experiment=tiny"
