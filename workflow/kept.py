"""Keep finished runs in docs/results, so that no machine makes them again.

kept.py keep EXPERIMENT --machine WORDS   add what is finished here
kept.py take EXPERIMENT                   put kept runs into their places here, as if made here
kept.py check EXPERIMENT [PAIR RUN SEED]  compare kept runs with those that are here
kept.py page EXPERIMENT                   make tables and a page of all kept runs

docs/guides/elsewhere.md says more.
"""

import subprocess
import tempfile
from datetime import date
from pathlib import Path

import contents
import part
from archive import (
    RESULTS,
    Archive,
    Run,
    archive_path,
    checksums,
    is_kept,
    listed_runs,
    made_from_others,
    read_archives,
    run_of_result,
    unpack,
    write_archive,
)
from comparable import changed_settings, settings_of, text_lacks
from differences import differences
from engine import Job, check_version, planned_jobs, read_records, write_records
from kept_tables import benchmark_of, make_page
from lock import hold_folder
from packed import records_of
from phases import declared, phase_of

from headcount.base import command
from headcount.base.errors import UserError
from headcount.base.files import write_json

_LATER = "; later files: "
_CHANGES = " and changes"  # of a commit: the tree differed from it


def keep(experiment: str, machine: str, replace: bool) -> str:
    """Archive every run all of whose jobs are finished here; returns how many, in words.

    A kept run whose files are the same stays, with all that it has, and grows by those that are
    new; it is named if its settings or code were others, and then replaced if it is to be. The
    words warn if the tree has changes that no commit has. Raises UserError for a run that has other
    values, unless it is to be replaced; the others are kept.
    """
    about = {"machine": machine, "commit": _commit(), "settings": settings_of(experiment)}
    kept, stay, lacking, refused, older = 0, 0, {}, [], []
    for run, jobs in _by_run(planned_jobs(experiment), experiment).items():
        path = archive_path(experiment, run)
        if reason := next(filter(None, map(_lacks, jobs)), ""):
            if path.is_file():  # taken up, or kept before code changed
                stay += 1
            else:
                lacking.setdefault(reason, []).append(run)
            continue
        new = _gather(experiment, run, jobs, about)
        old = read_archives(experiment, [run])[run] if path.is_file() else None
        differing = _differences(old, new.files, 0) if old else []
        otherwise = _made_otherwise(old, new, run) if old else ""
        if differing and not replace:
            refused += differing
        elif not old or differing or otherwise and replace:
            write_archive(path, new)
            kept += 1
        elif otherwise or set(new.files) <= set(old.files):
            stay += 1
            older += [f"{run} ({otherwise})"] if otherwise else []
        else:
            write_archive(path, _grown(old, new))
            kept += 1
    told = f"{RESULTS / experiment}/kept: {kept} runs kept, {stay} stay as they are"
    told += f", {sum(map(len, lacking.values()))} are not finished here"
    told += "".join(f"\n{reason}: {listed_runs(runs)}" for reason, runs in lacking.items())
    if older:
        told += "\nkept with other settings or code; --replace keeps those that are here: "
        told += "; ".join(older)
    told += _not_committed(about["commit"]) if kept else ""
    if refused:
        print(told)
        raise UserError(_listed(refused) + "\n--replace keeps the values that are here")
    return told


def take(experiment: str) -> str:
    """Put the files of kept runs into their places, with the records of how they were made."""
    archives = read_archives(experiment)
    phases, packs = declared(experiment), {}
    with tempfile.TemporaryDirectory() as folder:
        for archive in archives.values():
            unpack(archive.files, Path(folder, part.FILES))
            for path in filter(is_kept, archive.records):
                packs.setdefault(phase_of(path, phases), {})[path] = archive.records[path]
        for phase, records in packs.items():
            write_json(Path(folder, part.RECORDS, f"{phase}.json"), records)
        write_json(Path(folder, part.STATES), {})
        told = part.take(experiment, Path(folder)).replace(folder, f"{len(archives)} kept runs")
    every = {path: record for each in archives.values() for path, record in each.records.items()}
    write_records({path: record for path, record in every.items() if not Path(path).exists()})
    taken, *more = told.splitlines()
    return "\n".join([taken.partition(";")[0], *more, *text_lacks(experiment, archives)])


def check(experiment: str, runs: list[Run], within: float) -> str:
    """Compare kept runs with the files that are here; returns how many are the same, in words.

    Raises UserError naming every file that differs or is gone, or if none of the runs is here.
    """
    same, absent, differing = [], [], []
    for run, archive in read_archives(experiment, runs).items():
        kept = list(filter(is_kept, archive.records))
        found = [path for path in kept if Path(path).exists()]
        faults = _differences(archive, {path: Path(path).read_bytes() for path in found}, within)
        faults += [
            f"{path}: is kept and is not here" for path in kept if found and path not in found
        ]
        (differing.extend(faults) if faults else (same if found else absent).append(str(run)))
    told = f"{len(same)} kept runs are the same here" + f" within {within:g}" * bool(within)
    told += f", {len(absent)} are not here" + f": {'; '.join(absent)}" * bool(absent)
    if differing or not same:
        raise UserError("\n".join(filter(None, [_listed(differing) if differing else "", told])))
    return told


def _differences(kept: Archive, here: dict[str, bytes], within: float) -> list[str]:
    """How files that are in both differ, a line for each that does; benchmarks tell the time."""
    both = sorted(set(kept.records) & set(here))
    return [
        found for path in both if (found := differences(path, kept.files[path], here[path], within))
    ]


def _grown(kept: Archive, here: Archive) -> Archive:
    """A kept run with those files that it lacks: what it has stays as it was made, and told of.

    Where a new file was made from another version of one that is kept, with the same values but
    other words on how it was made, the run that is here takes its place. Raises UserError if that
    lacks a file.
    """
    if any(made_from_others(here.records, checksums(kept.records))):
        if lacking := sorted(set(kept.files) - set(here.files)):
            raise UserError(
                f"{lacking[0]}: expected this file here, as it is kept, found none; without it "
                "new files, made from others, cannot be kept beside it. Make it here as well"
            )
        return here
    both = {key: _joined(kept.about[key], here.about[key]) for key in ("machine", "commit")}
    return Archive(kept.about | both, here.records | kept.records, here.files | kept.files)


def _joined(first: str, later: str) -> str:
    """What made a run, and what made files that it got later, where that is something else."""
    known = first.split(_LATER)
    return first if later in known else _LATER.join([*known, later])


def _made_otherwise(kept: Archive, here: Archive, run: Run) -> str:
    """Which settings or code a kept run was made with, if others than the same run here."""
    if changed := changed_settings(kept.about["settings"], here.about["settings"], run):
        return changed
    for path in sorted(set(kept.records) & set(here.records)):
        before, now = kept.records[path], here.records[path]
        if any(before[key] != now[key] for key in ("shellcmd", "params", "code")):
            return f"{now['rule']} ran with other settings or code"
    return ""


def _listed(differing: list[str]) -> str:
    return "\n".join([f"{len(differing)} file(s) differ from those that are kept:", *differing])


def _by_run(jobs: list[Job], experiment: str) -> dict[Run, list[Job]]:
    """The jobs that write into the folders of each run; a job may have several runs."""
    found: dict[Run, list[Job]] = {}
    for job in jobs:
        runs = {run_of_result(output, experiment) for output in job["output"]} - {None}
        for run in sorted(runs):
            found.setdefault(run, []).append(job)
    return dict(sorted(found.items()))


def _lacks(job: Job) -> str:
    """Why a job's files are not kept; empty if all are here as it would make them."""
    if not part.finished(job["output"]):
        return f"{job['rule']} has not ended"
    now = (job["shell"], repr(job["code"]))
    records = read_records(job["output"])
    for record in records.values():
        if record["shellcmd"] != now[0] or now[1] not in record["params"]:
            return f"{job['rule']} ran with other settings or code"
    read = {
        path: f"sha256:{contents.content(path)}" for path in job["input"] if Path(path).is_file()
    }
    for path, other in made_from_others(records, read):
        return f"{path} was made from another {other} than is here"
    return ""


def _gather(experiment: str, run: Run, jobs: list[Job], about: dict) -> Archive:
    """The archive of a run that is finished here."""
    outputs = [output for job in jobs for output in job["output"]]
    own = [path for path in outputs if run_of_result(path, experiment) == run]
    records = records_of(own)
    first = [job for job in jobs if run_of_result(job["output"][0], experiment) == run]
    measured = [path for job in first if Path(path := benchmark_of(job)).is_file()]
    ended = max(record["endtime"] for record in records.values())
    told = about | run._asdict() | {"finished": date.fromtimestamp(ended).isoformat()}
    files = {path: Path(path).read_bytes() for path in [*filter(is_kept, own), *measured]}
    return Archive(told, records, files)


def _commit() -> str:
    """The commit that is checked out; with a word if code, rules or settings differ from it.

    Raises UserError outside a Git checkout: an archive says which code made it.
    """

    def git(*words: str) -> str:
        try:
            done = subprocess.run(["git", *words], check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as fault:
            why = getattr(fault, "stderr", None) or fault
            raise UserError(
                f"expected a Git checkout, whose commit the kept runs name; found: {why}. Clone "
                "the project, and put the results into that folder"
            ) from fault
        return done.stdout

    folders = ("src", "scripts", "workflow", "config")
    changed = bool(git("status", "--porcelain", *folders))
    return git("rev-parse", "--short", "HEAD").strip() + _CHANGES * changed


def _not_committed(commit: str) -> str:
    """A line that warns if runs are kept with this commit and changes; else empty."""
    if not commit.endswith(_CHANGES):
        return ""
    alone = f"commit {commit.removesuffix(_CHANGES)} alone cannot make these runs again"
    return (
        f"\nwarning: code, rules or settings have changes that are not committed: {alone}. "
        "Delete the files that were kept now, commit the changes, and keep again"
    )


def _arguments():
    parser = command.parser(__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    keeping, taking, checking, paging = map(steps.add_parser, ("keep", "take", "check", "page"))
    for each in (keeping, taking, checking, paging):
        each.add_argument("experiment")
    words = "what it ran on: processor, cores, what else ran"
    keeping.add_argument("--machine", required=True, help=words)
    keeping.add_argument("--replace", action="store_true", help="kept runs that have other values")
    checking.add_argument("run", nargs="*", help="PAIR RUN SEED; all that are kept, if left out")
    words = "how far numbers may be apart, as a share of the larger; exact, if left out"
    checking.add_argument("--within", type=float, default=0.0, help=words)
    words = "claims that the page begins with, such as HM-03"
    paging.add_argument("--short", nargs="*", default=[], help=words)
    args = parser.parse_args()
    if args.step == "check" and args.run and not (len(args.run) == 3 and args.run[2].isdecimal()):
        parser.error(f"expected PAIR RUN SEED, found {' '.join(args.run)}")
    return args


def main() -> None:
    """Read the arguments, and do the one step."""
    args = _arguments()
    check_version()
    if args.step == "keep":
        print(keep(args.experiment, args.machine, args.replace))
    elif args.step == "take":
        hold_folder()
        print(take(args.experiment))
    elif args.step == "check":
        runs = [Run(args.run[0], args.run[1], int(args.run[2]))] if args.run else []
        print(check(args.experiment, runs, args.within))
    else:
        print(make_page(args.experiment, args.short))


if __name__ == "__main__":
    command.run(main)
