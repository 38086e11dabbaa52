"""Hand over finished files of an experiment, and take those that another machine finished.

part.py give EXPERIMENT FOLDER       put finished results and their records into a folder
part.py take EXPERIMENT FOLDER ...   put them into their places here

Any tool can move the folder, such as DVC; see docs/guides/elsewhere.md.
"""

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from engines import records
from engines.phases import REPORT, Phase, declared
from engines.planned import is_raw, planned_jobs
from machine.lock import hold_folder

from headcount.base import command
from headcount.base.errors import UserError
from headcount.base.files import check_replaceable, sha256, whole_file, whole_folder, write_json

RECORDS, FILES = "records.json", "files"
"""Names in a part: the records, and the folder of the files under their own paths."""
DAMAGED = "Fetch the part again, for example by dvc pull, or have it given again"


def give(experiment: str, folder: Path) -> str:
    """Write a part, in place of an earlier one; return a message.

    Raises UserError for a folder that contains anything else.
    """
    known = (RECORDS, FILES) if (folder / RECORDS).is_file() else ()
    check_replaceable(folder, "an earlier part", known)
    report = declared(experiment)[REPORT]  # made again where all parts are together
    jobs = [job["output"] for job in planned_jobs(experiment) if not is_raw(job)]
    jobs = [outputs for outputs in jobs if not report.owns(outputs[0])]
    given = [path for outputs in jobs if records.finished(outputs) for path in outputs]
    with whole_folder(folder) as part:
        for path in given:
            _link(path, part / FILES / path)
        write_json(part / RECORDS, records.records_of(given))
    return f"{folder}: {len(given)} finished files"


def _link(path: str, target: Path) -> None:
    """Link a file, or copy it where the disk allows no links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)


def take(experiment: str, folder: Path) -> str:
    """Put the files of a part into their places; return a message.

    A job's files are taken together, and not where one of them is here with other content. Raises
    UserError naming what is damaged; the files of jobs before that one are in their places.
    """
    if not (folder / RECORDS).is_file():
        raise UserError(f"{folder}: expected a part that part.py give wrote, found no {RECORDS}")
    phases, taken, stay = declared(experiment).values(), [], 0
    for job in _by_job(records.read_pack(folder / RECORDS)):
        _check_places(folder, job, phases)
        if _is_here(job):
            stay += len(job)
            continue
        _copy(folder, job)
        taken += records.take(job)
    records.freshen(taken)
    return f"{folder}: {len(taken)} files taken, {stay} stay as they are here"


def _by_job(packed: Mapping[str, records.Record]) -> Iterable[dict[str, records.Record]]:
    """Return the records of every job: those of files that one command made."""
    jobs: dict[tuple, dict[str, records.Record]] = {}
    for output, record in sorted(packed.items()):
        jobs.setdefault((record["rule"], record["shellcmd"]), {})[output] = record
    return jobs.values()


def _check_places(folder: Path, job: Iterable[str], phases: Iterable[Phase]) -> None:
    for output in job:
        if not any(phase.owns(output) for phase in phases):
            raise UserError(f"{folder}: {output} is no output of this experiment. {DAMAGED}")


def _is_here(job: Mapping[str, records.Record]) -> bool:
    """Return whether a job is finished here, or one of its files is here with other content."""
    here = [output for output in job if os.path.exists(output)]
    other = any(records.content(output) != job[output]["sha256"] for output in here)
    return other or records.finished(job)


def _copy(folder: Path, job: Mapping[str, records.Record]) -> None:
    """Copy a job's files, if all are in the part as their job wrote them."""
    for output, record in job.items():
        source = folder / FILES / output
        if not source.is_file() or sha256(source) != record["sha256"]:
            raise UserError(f"{source}: gone, or changed since its job wrote it. {DAMAGED}")
    for output in job:
        with whole_file(Path(output)) as target:
            shutil.copyfile(folder / FILES / output, target)


def main() -> None:
    """Read the arguments and give, or take, while no run works here."""
    parser = command.parser(__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    giving, taking = steps.add_parser("give"), steps.add_parser("take")
    for step in (giving, taking):
        step.add_argument("experiment")
    giving.add_argument("folder", type=Path, help="an earlier part there is replaced")
    taking.add_argument("folders", type=Path, nargs="+")
    args = parser.parse_args()
    records.check_version()
    hold_folder()
    if args.step == "give":
        print(give(args.experiment, args.folder))
    else:
        print("\n".join(take(args.experiment, folder) for folder in args.folders))


if __name__ == "__main__":
    command.run(main)
