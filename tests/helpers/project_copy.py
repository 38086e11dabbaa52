"""A copy of the project to run the workflow in, as a fresh clone would have it.

Commands that a test runs to their end, by `run`, `call` and `shell`, are forked from a Python with
its libraries loaded, and so are those that they start. What a test starts to watch or to kill, and
what sees variables that a library may read as it is loaded, is a process of its own.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from warm_python import PROGRAMS, clients

ROOT = Path(__file__).resolve().parents[2]
PERSON = {f"GIT_{role}_{key}": f"a@b.{role.lower()}" for role in ("AUTHOR", "COMMITTER")
          for key in ("NAME", "EMAIL")}  # fmt: skip

PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

TARGETS = {"total", "all", "raw", "prepare"}
"""In the table of a dry run, what makes no file."""


class ProjectCopy:
    """The tracked files in a folder of their own."""

    def __init__(self, folder: Path):
        self.folder = folder
        for name in ("config", "scripts", "src", "workflow", ".dvc"):
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "cache", "tmp")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        for name in ("environment.yml", "dvc.yaml", ".dvcignore", ".gitignore"):
            shutil.copy(ROOT / name, folder)
        for name in ("data", "results"):
            (folder / name).mkdir()
            shutil.copy(ROOT / name / "README.md", folder / name)

    @classmethod
    def of(cls, folder: Path) -> "ProjectCopy":
        """A folder that is a copy already, such as a clone of one."""
        copy = object.__new__(cls)
        copy.folder = folder
        return copy

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen:
        """Start Snakemake in the folder, on the copy's own package and scripts."""
        return self.start_command("snakemake", "--cores", "2", *arguments, **variables)

    def start_command(self, *command: str, **variables: str) -> subprocess.Popen:
        """Start a command of this environment in the folder."""
        own = {"PYTHONPATH": str(self.folder / "src"), "PATH": PATH, **PERSON}
        own["PYTHONDONTWRITEBYTECODE"] = ""  # a copy is its own: what is compiled is kept there
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=os.environ | own | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str, **variables: str) -> tuple[int, str]:
        """Run Snakemake to its end; returns exit code and everything it printed."""
        return self.end("snakemake", "--cores", "2", *arguments, **variables)

    def call(self, *command: str, fails: bool = False, **variables: str) -> str:
        """Run a command that must succeed (or must fail); returns everything it printed."""
        code, output = self.end(*command, **variables)
        assert (code != 0) == fails, output
        return output

    def end(self, *command: str, **variables: str) -> tuple[int, str]:
        """Run a command to its end; returns exit code and everything it printed."""
        ours = all(name.startswith("HEADCOUNT_") for name in variables)
        saves = ours and PROGRAMS & set(re.findall(r"[\w./-]+", " ".join(command)))
        warm = {"PATH": f"{clients()}{os.pathsep}{PATH}"} if saves else {}
        process = self.start_command(*command, **variables, **warm)
        output, _ = process.communicate(timeout=600)
        return process.returncode, output

    def shell(self, command: str, fails: bool = False) -> str:
        """Run a line as a person would type it; returns everything it printed."""
        return self.call("bash", "-c", command, fails=fails)

    def change(self, name: str, old: str, new: str) -> None:
        """Replace a text that must be there in a file of the copy."""
        path = self.folder / name
        text = path.read_text()
        assert old in text, f"{name} does not hold {old!r}"
        path.write_text(text.replace(old, new))

    def commit(self) -> None:
        """Commit everything that Git does not ignore."""
        self.call("git", "add", "-A")
        self.call("git", "commit", "-q", "--allow-empty", "-m", "state")


def link_project(folder: Path) -> Path:
    """The folder, with links to what a plan reads: for commands that change nothing of it."""
    for name in ("config", "workflow", "scripts", "src", "dvc.yaml"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def ran(output: str) -> dict[str, int]:
    """Numbers of jobs done by rule in an output, over all the Snakemake runs in it."""
    return dict(Counter(re.findall(r"^ *\d+/\d+ done +(\w+)", output, re.MULTILINE)))


def planned(output: str) -> dict[str, int]:
    """Numbers of jobs by rule in the output of one dry run, which prints its table twice."""
    rows = re.findall(r"^(\w+) +(\d+)$", output, re.MULTILINE)
    return {rule: int(count) for rule, count in rows if rule not in TARGETS}


def timeless(path: Path) -> bytes:
    """Return a file's content; of the curve of a training, without the columns that tell time."""
    content = path.read_bytes()
    if path.name != "curves.csv" or not content.startswith(b"step,epoch"):
        return content
    rows = (row.split(b",") for row in content.splitlines())
    return b"\n".join(b",".join(row[:5] + row[7:]) for row in rows)


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until a condition is true. Fail after so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"nothing within {seconds} s"
        time.sleep(0.01)


def training_of(folder: Path) -> int:
    """Process id of the training that runs in a folder; raises AssertionError if none does."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            here = os.readlink(process / "cwd") == str(folder)
        except OSError:  # gone meanwhile, or not ours to look at
            continue
        if here and words[1:2] == [b"scripts/train.py"]:
            return int(process.name)
    raise AssertionError(f"no training runs in {folder}")


def saved_states(folder: Path, experiment: str = "quickstart") -> list[str]:
    """Names of the training states in a folder, oldest first."""
    states = (folder / "results" / experiment / "state").glob("*/*/update-*/state.json")
    return sorted(path.parent.name for path in states)
