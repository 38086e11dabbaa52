"""Make every table and figure of one experiment from its frozen measurements."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.golden.frozen import ROOT
from tests.golden.renamed import rename
from tests.helpers.warm_python import clients

_PLAN = """
import json, sys
sys.path.insert(0, "workflow")
try:
    from engines.phases import planned_jobs
except ModuleNotFoundError:  # of an earlier commit
    from engine import planned_jobs
print(json.dumps(planned_jobs(sys.argv[1])))
"""
_LARGE = 1_000_000
_KINDS = ("tables", "figures")
_PARTS = ("config", "scripts", "src", "workflow")


def make_outputs(
    experiment: str, files: Iterable[tuple[str, bytes]], root: Path = ROOT
) -> dict[str, bytes]:
    """Return the CSV of every table and figure by its path, made by the project in `root`.

    The commands are the workflow's own. An input that is not among `files` is left out of its
    command, as the measurements of an experiment need not be complete.
    """
    with tempfile.TemporaryDirectory() as name:
        folder, files = Path(name), dict(files)
        for part in _PARTS:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(root / part, folder / part, ignore=ignored)
        jobs = _planned(experiment, folder)
        read = {path for job in jobs for path in job["input"] if path.startswith("data/")}
        if read - files.keys():
            _prepare(experiment, folder)
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(rename(path, content, root))
        return _make_all(experiment, jobs, folder)


def made_by_commit(experiment: str, files: Iterable[tuple[str, bytes]], commit: str) -> dict:
    """Return what `make_outputs` returns with the code of a commit."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name, "code")
        subprocess.run(
            ["git", "worktree", "add", "-q", "--detach", root, commit], cwd=ROOT, check=True
        )
        try:
            return make_outputs(experiment, files, root)
        finally:
            subprocess.run(
                ["git", "worktree", "remove", "--force", str(root)], cwd=ROOT, check=True
            )


def measurements(experiment: str) -> dict[str, bytes]:
    """Return the files of an experiment here that its tables and figures are made from.

    An experiment of which one target was made lacks all files of some rules. Generated text is left
    out if it is large, since `make_outputs` generates it again.
    """
    jobs = _planned(experiment, ROOT)
    made = {path for job in jobs for path in job["output"]}
    read = {path for job in jobs for path in job["input"]} - made
    timed = (ROOT / f"results/{experiment}/benchmarks").rglob("*.tsv")
    read |= {str(path.relative_to(ROOT)) for path in timed}
    facts = {str(Path(path).with_suffix(".json")) for path in read}  # some are read beside a table
    read |= {path for path in facts if (ROOT / path).exists()}
    here = sorted(path for path in read if (ROOT / path).exists())
    begun = {_kind(path) for path in here}
    if lacking := sorted(path for path in read - set(here) if _kind(path) in begun):
        sys.exit(f"{experiment}: expected all files of a rule or none, but {lacking} are missing")
    found = {path: (ROOT / path).read_bytes() for path in here if not path.endswith(".html")}
    text = {path for path in found if path.startswith("data/")}
    large = sum(len(found[path]) for path in text) > _LARGE
    return {path: content for path, content in found.items() if not (large and path in text)}


def _kind(path: str) -> tuple[str, str]:
    """Return the folder below an experiment's and the name of a file: one rule's files share it."""
    return Path(path).parts[2], Path(path).name


def _planned(experiment: str, folder: Path) -> list[dict[str, Any]]:
    """Return the jobs that make tables and figures of an experiment."""
    planned = json.loads(_run([sys.executable, "-c", _PLAN, experiment], folder))
    kinds = tuple(f"results/{experiment}/{kind}/" for kind in _KINDS)
    return [job for job in planned if any(path.startswith(kinds) for path in job["output"])]


def _make_all(experiment: str, jobs: list[dict[str, Any]], folder: Path) -> dict[str, bytes]:
    for job in sorted(jobs, key=lambda job: _depth(job, jobs)):
        words = shlex.split(job["shell"].partition(" > ")[0])[1:]
        there = [w for w in words if w not in job["input"] or (folder / w).exists()]
        _run([str(clients() / "python"), *there], folder)
    results = folder / "results" / experiment
    made = (path for kind in _KINDS for path in sorted((results / kind).glob("*.csv")))
    return {str(path.relative_to(folder / "results")): path.read_bytes() for path in made}


def _depth(job: dict[str, Any], jobs: list[dict[str, Any]]) -> int:
    """Return how many jobs stand in a row before a job."""
    before = [each for each in jobs if set(each["output"]) & set(job["input"])]
    return 1 + max((_depth(each, jobs) for each in before), default=0)


def _prepare(experiment: str, folder: Path) -> None:
    """Make the text of an experiment; say so if its corpora cannot be fetched here."""
    words = ["snakemake", "--cores", "2", "prepare", "--config", f"experiment={experiment}"]
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, env=_environment(folder)
    )
    if done.returncode:
        last = " ".join(done.stderr.strip().splitlines()[-1:])
        print(f"{experiment}: its text is not here, so some tables are missing: {last}")
    shutil.rmtree(folder / "results", ignore_errors=True)  # times and logs of this machine


def _run(words: list[str], folder: Path) -> str:
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, env=_environment(folder)
    )
    if done.returncode:
        sys.exit(f"{' '.join(words)[:300]}\n{done.stderr}")
    return done.stdout


def _environment(folder: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(folder / "src"), "MPLBACKEND": "agg"}
