"""Locks of the packages: complete, in step with pyproject.toml, old enough, and obeyed by pip."""

import itertools
import json
import re
import shutil
import subprocess
import sys
import tomllib
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.version import Version
from published import served
from script_runner import ROOT, run_file

FILES = ("run", "test", "extras", "torch")


def locks(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and messages of the script, run in a folder by this process."""
    with chdir(folder), redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as said:
        code = run_file(".ci/locks.py", arguments)
    return code, out.getvalue(), said.getvalue()


def test_f56_every_package_is_pinned_with_hashes_and_pyproject_agrees():
    """The command in a process of its own, as a person starts it."""
    command = [sys.executable, ROOT / ".ci" / "locks.py", "check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    for name in FILES:
        text = (ROOT / "locks" / f"{name}.txt").read_text()
        entries = re.sub(r"^#.*\n", "", text, flags=re.M).replace("\\\n", "").splitlines()
        assert len(entries) > 5
        for entry in entries:
            pinned, *hashes = re.split(r"\s+--hash=sha256:", entry)
            assert hashes and all(re.fullmatch("[0-9a-f]{64}", one) for one in hashes), entry
            release, _, marker = pinned.partition(" ; ")
            assert Version(release.partition("==")[2]).is_prerelease is False
            if marker:
                Marker(marker)
    # The build of torch, and what only some builds need, is left to a lock of its own.
    assert not re.search(r"^(torch|nvidia|triton)", (ROOT / "locks" / "run.txt").read_text(), re.M)


@pytest.fixture
def project(tmp_path) -> Path:
    """The files that are compared, to change them."""
    shutil.copytree(ROOT / "locks", tmp_path / "locks")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("pyproject.toml", "tqdm>=4.67,<5", "tqdm>=4.71,<5", "tqdm>=4.71,<5, locked is 4.70.1"),
        ("pyproject.toml", "rich>=15.0,<16", "rich>=14.0,<15", "rich>=14.0,<15, locked is 15.0.0"),
        # What a run and the tests need has to be where the README's lines look.
        ("pyproject.toml", "report = [", 'report = ["jieba>=0.42.1",', "0.42.1 in locks/extras"),
        ("pyproject.toml", "test = [", 'test = ["stanza>=1.15.0",', "1.15.0 in locks/extras"),
        ("locks/versions.txt", "tqdm==4.70.1", "tqdm==4.70.0", "other versions than the locks"),
        ("locks/run.txt", "tqdm==4.70.1", "tqdm>=4.70.1", "found 'tqdm>=4.70.1"),
        ("locks/test.txt", "ruff==", "tqdm==", "tqdm is in run.txt and test.txt"),
        ("locks/torch.txt", "torch==2.13.0 \\\n", "torch==2.13.0\n# ", "found 'torch==2.13.0'"),
    ],
)
def test_f56_a_changed_or_unlocked_requirement_is_named(project, file, old, new, words):
    path = project / file
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    if "# " in new:  # takes the hashes away, which are indented
        path.write_text(re.sub(r"(?m)(?<=^# )(    --hash.*\n)+", "\n", path.read_text()))
    code, _, message = locks(project, "check")
    assert code == 2 and words in message, message


def test_every_requirement_has_a_lowest_version_and_ends_before_the_next_major_one():
    """By the library `packaging`. Snakemake has one version, and calendar versions have no end."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    entries = map(Requirement, itertools.chain(project["dependencies"], *extras))
    asked = {entry.name: entry for entry in entries if entry.name != "headcount"}
    locked = read_versions((ROOT / "locks/versions.txt").read_text())
    code, printed, _ = locks(ROOT, "lowest")
    low = read_versions(printed)
    assert code == 0 and low.keys() == {*asked, "setuptools"} and len(low) > 40
    for name, entry in asked.items():
        bounds = {bound.operator: Version(bound.version) for bound in entry.specifier}
        assert locked[name] in entry.specifier
        if name == "snakemake":
            assert bounds == {"==": low[name]}
        else:
            assert bounds.pop(">=") == low[name]
            assert bounds == (
                {} if name == "regex" else {"<": Version(f"{locked[name].major + 1}")}
            )


def read_versions(text: str) -> dict[str, Version]:
    """Names and versions in lines of NAME==VERSION, perhaps with a marker."""
    pins = re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE)
    return {name: Version(version) for name, version in pins}


@pytest.fixture
def index(project):
    """An index that lists one package with two files; the lock has it alone. Change `files`."""
    for name in FILES:
        (project / "locks" / f"{name}.txt").write_text("# nothing\n")
    pins = "".join(f" \\\n    --hash=sha256:{digit * 64}" for digit in "ab")
    (project / "locks" / "run.txt").write_text(f"# one\nsome-package==1.5{pins}\n")
    listed = SimpleNamespace(files={"a": "2020-01-01", "b": "2020-01-02"})

    def answer(path: str) -> bytes:
        assert path == "pypi/some-package/json"
        files = [
            {"digests": {"sha256": digit * 64}, "upload_time_iso_8601": f"{day}T10:00:00Z"}
            for digit, day in listed.files.items()
        ]
        return json.dumps({"releases": {"1.5": files, "1.6": []}}).encode()

    with served(answer) as listed.address:
        yield listed


def aged(project: Path, index: SimpleNamespace) -> tuple[int, str]:
    code, _, message = locks(project, "age", "--index", index.address)
    return code, message


def test_f56_a_release_that_is_too_fresh_or_gone_is_named(project, index):
    assert aged(project, index) == (0, "")
    index.files["b"] = "2999-12-31"
    code, message = aged(project, index)
    assert (code, message) == (
        2,
        "locks/run.txt: some-package==1.5: a file of 2999-12-31, too fresh; "
        "lock an older version\n",
    )
    del index.files["b"]  # taken back, or another one in its place
    code, message = aged(project, index)
    assert code == 2 and "the index no longer lists 1 of its files (bbbb" in message
