"""Tables, figures and the page of all kept runs of an experiment, outside of Snakemake's graph.

The commands are those of its rules, on the archives' files. Of runs that are not kept, and of text
that is not here, there is nothing, and it is said.
"""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from archive import RESULTS, Archive, Run, listed_runs, read_archives, run_of_result, unpack
from comparable import (
    Archives,
    code_versions,
    comparable,
    lacking_files,
    number_formats,
    text_lacks,
)
from engine import Job, planned_jobs

from headcount.base import command
from headcount.base.files import check_replaceable, whole_folder
from headcount.findings.chapters import chapters
from headcount.findings.report.results_page import write_results_page

TABLES = Path("results/kept")
"""Where they are made, a folder for each experiment."""


def benchmark_of(job: Job) -> str:
    """What Snakemake measured of a job: it lies as the job's log does."""
    log = re.search(r"(results/[^/]+)/logs/(\S+)\.log", job["shell"])
    return f"{log[1]}/benchmarks/{log[2]}.tsv" if log else ""


def make_page(experiment: str, short: list[str]) -> str:
    """Make the tables of all kept runs, and their page; returns where, and what was left out."""
    jobs = planned_jobs(experiment)
    planned = {run_of_result(path, experiment) for job in jobs for path in job["output"]} - {None}
    archives, left_out = comparable(read_archives(experiment), experiment, planned)
    folder = TABLES / experiment
    _make_tables(experiment, archives, jobs, folder)
    page = RESULTS / f"{experiment}.md"
    versions = [*code_versions(archives), *number_formats(archives)]
    kept = list(map(_row, archives.items()))
    write_results_page(folder, _made(archives), short, page, kept, versions)
    _copy_tables(folder, RESULTS / experiment / "tables")
    told = f"{page}: {len(archives)} kept runs; all tables and figures are in {folder}"
    waiting = sorted(planned - set(archives))
    not_yet = [f"not kept yet: {listed_runs(waiting)}"] if waiting else []
    lacking = lacking_files(archives, experiment, jobs)
    lines = [told, *left_out, *not_yet, *versions, *lacking, *text_lacks(experiment, archives)]
    return "\n".join(lines)


def _make_tables(experiment: str, archives: Archives, jobs: list[Job], folder: Path) -> None:
    """Put the files of kept runs into a folder, and run the commands of all chapters on them."""
    results = f"results/{experiment}"
    with whole_folder(folder) as part:
        for archive in archives.values():
            unpack({path.removeprefix(f"{results}/"): x for path, x in archive.files.items()}, part)
    for chapter in chapters():
        for job in jobs:
            if job["rule"] == chapter.name:
                _make(job, results, folder)


def _make(job: Job, results: str, folder: Path) -> None:
    """Run a rule's command on what there is of its files, in the folder's own places."""
    words = []
    for word in shlex.split(job["shell"].partition(" > ")[0])[1:]:
        moved = re.sub(rf"^{re.escape(results)}(?=/|$)", str(folder), word)
        if word not in job["input"] or Path(moved).exists():
            words.append(moved)
    done = subprocess.run([sys.executable, *words], preexec_fn=command.die_with_parent)
    if done.returncode:
        sys.exit(done.returncode)  # the script has said why


def _made(archives: Archives) -> dict[str, str]:
    """Words for the page: on which machines, when and by which commits runs were made."""
    abouts = [archive.about for archive in archives.values()]
    days = sorted({about["finished"] for about in abouts})
    words = {key: dict.fromkeys(a[key] for a in abouts) for key in ("machine", "commit")}
    words["date"] = dict.fromkeys([days[0], days[-1]])
    ends = {"date": " to "}
    return {key: ends.get(key, "; ").join(each) for key, each in words.items()}


def _row(kept: tuple[Run, Archive]) -> dict[str, Any]:
    """A kept run as the page lists it."""
    run, archive = kept
    about, model = archive.about, archive.described()
    code = model.get("provenance", {}).get("code", {}).get("digest", "–")
    weights = model.get("sha256", {}).get("weights.safetensors", "–")[:12]
    told = {key: about[key] for key in ("finished", "machine", "commit")}
    told |= {"format": archive.number_format() or "–", "code": code, "weights": weights}
    return run._asdict() | told


def _copy_tables(folder: Path, tables: Path) -> None:
    """Put the tables' rows into the repository, in place of those of before."""
    check_replaceable(tables, "tables of an earlier page", [t.name for t in tables.glob("*.csv")])
    with whole_folder(tables) as part:
        for table in sorted((folder / "tables").glob("*.csv")):
            shutil.copyfile(table, part / table.name)
