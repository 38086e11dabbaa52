"""Tables, figures and the page of all kept runs of an experiment, outside of Snakemake's graph.

The commands are those of its rules, on the archives' files. Of runs that are not kept, and of text
that is not here, there is nothing, and it is said.
"""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from archive import RESULTS, Archive, Run, read_archives, run_of_result, unpack
from engine import Job, planned_jobs
from plan import BASE, CONFIG

from headcount.base import command
from headcount.base.errors import UserError
from headcount.base.files import sha256, whole_folder
from headcount.base.settings.experiment import load_experiment
from headcount.findings.chapters import chapters
from headcount.findings.report.results_page import write_results_page

Archives = dict[Run, Archive]
TABLES = Path("results/kept")
"""Where they are made, a folder for each experiment."""

LISTS = {"title", "pairs", "seeds", "runs", "pruned", "keep_updates"}
HARDWARE = {"device", "threads", "processes"}
"""Keys that say which runs there are, and on what they are made: kept runs may differ in them."""


def settings_of(experiment: str) -> dict[str, Any]:
    """All settings of an experiment but such keys, as `section.key`."""
    found = load_experiment(experiment, CONFIG).model_dump(mode="json")
    return dict(_flat(found, ""))


def _flat(section: dict[str, Any], above: str) -> Iterator[tuple[str, Any]]:
    for key, value in section.items():
        if key not in LISTS | HARDWARE:
            yield from (
                _flat(value, f"{above}{key}.")
                if isinstance(value, dict)
                else [(f"{above}{key}", value)]
            )


def benchmark_of(job: Job) -> str:
    """What Snakemake measured of a job: it lies as the job's log does."""
    log = re.search(r"(results/[^/]+)/logs/(\S+)\.log", job["shell"])
    return f"{log[1]}/benchmarks/{log[2]}.tsv" if log else ""


def make_page(experiment: str, short: list[str]) -> str:
    """Make the tables of all kept runs, and their page; returns where, and what was left out."""
    jobs = planned_jobs(experiment)
    planned = {run_of_result(path, experiment) for job in jobs for path in job["output"]} - {None}
    archives, left_out = _comparable(read_archives(experiment), experiment, planned)
    folder = TABLES / experiment
    _make_tables(experiment, archives, jobs, folder)
    page = RESULTS / f"{experiment}.md"
    write_results_page(folder, _made(archives), short, page, list(map(_row, archives.items())))
    _copy_tables(folder, RESULTS / experiment / "tables")
    told = f"{page}: {len(archives)} kept runs; all tables and figures are in {folder}"
    waiting = "; ".join(map(str, sorted(planned - set(archives))))
    not_yet = [f"not kept yet: {waiting}"] if waiting else []
    return "\n".join([told, *left_out, *not_yet, *text_lacks(experiment, archives)])


def _make_tables(experiment: str, archives: Archives, jobs: list[Job], folder: Path) -> None:
    """Put the files of kept runs into a folder, and run the commands of all chapters on them."""
    results = f"results/{experiment}"
    with whole_folder(folder) as part:
        for archive in archives.values():
            unpack({path.removeprefix(f"{results}/"): x for path, x in archive.files.items()}, part)
    order = [chapter.name for chapter in chapters()]
    shown = [job for job in jobs if job["rule"] in order]
    for job in sorted(shown, key=lambda job: order.index(job["rule"])):
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


def _comparable(
    archives: Archives, experiment: str, planned: set[Run]
) -> tuple[Archives, list[str]]:
    """Those that belong into one table, and why others do not.

    They are runs of the experiment of today, with its settings as far as both know them, and with a
    baseline of their pair and seed. Raises UserError if two were made from different text, or from
    another than is here.
    """
    settings = settings_of(experiment)
    reasons = {run: _reason(run, archive, settings, planned) for run, archive in archives.items()}
    based = {run._replace(run="") for run, why in reasons.items() if run.run == BASE and not why}
    for run, reason in reasons.items():
        if not reason and run._replace(run=BASE) in planned and run._replace(run="") not in based:
            reasons[run] = f"no {BASE} of this pair and seed is kept"
    left_out = [f"left out: {run}: {reason}" for run, reason in reasons.items() if reason]
    used = {run: archive for run, archive in archives.items() if not reasons[run]}
    if not used:
        raise UserError("\n".join(["expected kept runs to make tables of, found none:", *left_out]))
    _check_text(used)
    return used, left_out


def _reason(run: Run, archive: Archive, settings: dict[str, Any], planned: set[Run]) -> str:
    """Why a kept run is none of the experiment of today; empty if it is one."""
    if run not in planned:
        return "the experiment has no such run, pair or seed"
    return "; ".join(
        f"{key} was {value!r} and is {settings[key]!r}"
        for key, value in archive.about["settings"].items()
        if key in settings and settings[key] != value
    )


def _check_text(archives: Archives) -> None:
    known: dict[str, tuple[str, str]] = {}
    for run, archive in archives.items():
        for path, checksum in _text_of(archive):
            if path not in known and Path(path).exists():
                known[path] = (f"sha256:{sha256(Path(path))}", "what is here")
            before, whose = known.setdefault(path, (checksum, str(run)))
            if before != checksum:
                raise UserError(
                    f"{path}: expected that of {run} ({checksum}), found that of {whose} "
                    f"({before}); numbers on different text belong into different experiments"
                )


def _text_of(archive: Archive) -> Iterator[tuple[str, str]]:
    """Text that a run's jobs read, with its checksum."""
    for record in archive.records.values():
        for path, checksum in (record["input_checksums"] or {}).items():
            if path.startswith(("data/text/", "data/bpe/")):
                yield path, checksum


def text_lacks(experiment: str, archives: Archives) -> Iterator[str]:
    """What to do where text is not here that kept runs were made from."""
    read = {path for archive in archives.values() for path, _ in _text_of(archive)}
    if lacking := [path for path in sorted(read) if not Path(path).exists()]:
        yield (
            f"{lacking[0]} and {len(lacking) - 1} more files of text are not here. Make them in a "
            "run of their own; without them there are no tables of BLEU: snakemake --cores all "
            f"prepare --config experiment={experiment}"
        )


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
    return run._asdict() | told | {"code": code, "weights": weights}


def _copy_tables(folder: Path, tables: Path) -> None:
    """Put the tables' rows into the repository, in place of those of before."""
    with whole_folder(tables) as part:
        for table in sorted((folder / "tables").glob("*.csv")):
            shutil.copyfile(table, part / table.name)
