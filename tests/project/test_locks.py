"""Locks of the packages: complete, in step with pyproject.toml, old enough, and obeyed by pip."""

import json
import re
import shutil
import subprocess
import sys
from contextlib import chdir, redirect_stderr
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.markers import Marker
from packaging.version import Version
from published import served
from script_runner import ROOT, run_file

FILES = ("run", "test", "extras", "torch")


def locks(folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and messages of the script, run in a folder by this process."""
    with chdir(folder), redirect_stderr(StringIO()) as said:
        code = run_file(".ci/locks.py", arguments)
    return code, said.getvalue()


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
        ("pyproject.toml", '"tqdm==4.70.1"', '"tqdm==4.70.2"', "tqdm==4.70.2, locked is 4.70.1"),
        # What the tests need has to be where the README's test line looks.
        ("pyproject.toml", "test = [", 'test = ["stanza==1.15.0",', "1.15.0 in locks/extras"),
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
    code, message = locks(project, "check")
    assert code == 2 and words in message, message


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
    return locks(project, "age", "--index", index.address)


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
