"""Hand over what is finished of an experiment, and take up what was finished elsewhere.

part.py give EXPERIMENT FOLDER       put finished results, and how they were made, into a folder
part.py take EXPERIMENT FOLDER ...   put them into their places here, beside what is here

A folder is moved by whatever moves folders, DVC above all; see docs/guides/elsewhere.md.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import contents
import packed
from bridge import plan
from engine import check_version, mark_whole, read_records, unfinished
from lock import hold_folder
from phases import SHARED, declared, plan_file
from pydantic import TypeAdapter, ValidationError

from headcount.base import command
from headcount.base.errors import UserError
from headcount.base.files import (
    check_replaceable,
    read_json,
    sha256,
    whole_file,
    whole_folder,
    write_json,
)

REMADE = "report"
"""The phase that is made again where all is together: what it shows of a part is out of date."""
RECORDS, FILES, STATES = "records", "files", "states.json"
"""Of a part: records by phase, files under their own paths, which outputs a state leads to."""
WITHOUT_GIT = (
    "\nThere is no .git here: copy that folder by hand, or first run "
    "dvc config --local core.no_scm true; docs/guides/share.md says what works then"
)
DAMAGED = "Fetch the part again, as by dvc pull, or have it given again"


def give(experiment: str, folder: Path, states: bool) -> str:
    """Write a part, in place of an earlier one; returns how much it is, in words.

    `states`: with the last state of each unfinished training. Raises UserError for a folder that
    holds anything else.
    """
    known = (RECORDS, FILES, STATES) if (folder / STATES).is_file() else ()
    check_replaceable(folder, "an earlier part", known)
    plan(experiment)
    phases = [name for name in declared(experiment) if name != REMADE]
    jobs = {name: read_json(plan_file(experiment, name)) for name in phases}
    files = 0
    with whole_folder(folder) as part:
        for phase in phases:
            outputs = [output for job in jobs[phase] for output in finished(job["output"])]
            _put(outputs, part)
            write_json(part / RECORDS / f"{phase}.json", packed.records_of(outputs))
            files += len(outputs)
        every = [job for phase in phases for job in jobs[phase]]
        leads = dict(_states(experiment, every)) if states else {}
        _put([str(path) for state in leads for path in _last(Path(state))], part)
        write_json(part / STATES, leads)
    told = f"{folder}: {files} finished files, {len(leads)} states of unfinished trainings"
    return told if os.path.exists(".git") else told + WITHOUT_GIT


def take(experiment: str, folder: Path) -> str:
    """Put a part's files into their places; returns how many were taken and how many stay.

    A job's files are taken together, and not where one of them is here that is another. Raises
    UserError naming what is damaged; the files of jobs before that one are in their places.
    """
    packs = sorted((folder / RECORDS).glob("*.json"))
    if not packs:
        raise UserError(f"{folder}: expected a part that part.py give wrote, found no {RECORDS}")
    phases, taken, stays = declared(experiment), {}, 0
    leads = _read_leads(folder / STATES, experiment)
    try:
        for pack in packs:
            for records in _by_job(packed.read_pack(pack, phases, DAMAGED)):
                if _is_here(records):
                    stays += len(records)
                    continue
                _take_job(folder, records)
                taken |= records
    finally:
        packed.freshen(list(taken))
    states = sum(_take_state(folder, *lead) for lead in leads.items())
    told = f"{folder}: {len(taken)} files taken, {stays} stay as they are here; "
    told += f"{states} states of unfinished trainings taken"
    read = {path for record in taken.values() for path in record["input_checksums"]}
    if any(path.startswith(SHARED) and not os.path.exists(path) for path in read):
        told += (
            "\nFetch the raw data before anything else, or it counts as new, and all with it: "
            f"snakemake --cores all raw --config experiment={experiment}"
        )
    return told


def finished(outputs: list[str]) -> list[str]:
    """A job's outputs, if all of them are what it left there; otherwise none."""
    whole = all(os.path.isfile(output) and contents.is_as_recorded(output) for output in outputs)
    known = whole and not unfinished(outputs) and len(read_records(outputs)) == len(outputs)
    return outputs if known else []


def _state_root(experiment: str) -> str:
    return f"results/{experiment}/state"


def _states(experiment: str, jobs: Iterable[dict]) -> Iterator[tuple[str, list[str]]]:
    """Folders of states whose trainings are not finished, and what these will make."""
    for folder in sorted(Path(_state_root(experiment)).glob("*")):
        for job in jobs:
            ends = f"/{folder.name}"
            if any(word.strip("'\"").endswith(ends) for word in job["shell"].split()):
                if not finished(job["output"]) and any(_last(folder)):
                    yield str(folder), job["output"]
                break


def _last(folder: Path) -> Iterator[Path]:
    """Files of the last state that lies below a folder, and of the weights that were put by."""
    sets = sorted(folder.glob("*/update-*/state.json"), key=lambda path: path.stat().st_mtime)
    for last in sets[-1:]:
        yield from last.parent.iterdir()
        yield from last.parents[1].glob("kept/*")


def _put(paths: list[str], part: Path) -> None:
    """Add files under their own paths; where the disk allows it they take no room twice."""
    for path in paths:
        target = part / FILES / path
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, target)
        except OSError:
            shutil.copyfile(path, target)


def _by_job(records: dict[str, dict]) -> Iterable[dict[str, dict]]:
    """Records of files, those that one command made together."""
    jobs: dict[tuple, dict[str, dict]] = {}
    for output, record in sorted(records.items()):
        jobs.setdefault((record["rule"], record["shellcmd"]), {})[output] = record
    return jobs.values()


def _is_here(records: dict[str, dict]) -> bool:
    """Whether a job's files are here, all of them and on record, or one that is another.

    Those of a `take` that was killed may lie here, and nothing says yet what made them.
    """
    here = [output for output in records if os.path.exists(output)]
    other = any(contents.content(output) != records[output]["sha256"] for output in here)
    return other or bool(finished(list(records)))


def _take_job(folder: Path, records: dict[str, dict]) -> None:
    """Put a job's files into their places, as far as they are not there, and their records."""
    lacking = (output for output in records if not os.path.exists(output))
    _place({folder / FILES / output: Path(output) for output in lacking}, records)
    for output, record in records.items():
        os.utime(output, (record["endtime"], record["endtime"]))
        packed.take(output, record)
    mark_whole(list(records))


def _place(targets: dict[Path, Path], records: dict[str, dict]) -> None:
    """Copy files of a part, each to its target, if all are there as their records have them.

    Raises UserError before the first is copied if one is gone, or is not what its job wrote.
    """
    for source, target in targets.items():
        if not source.is_file():
            raise UserError(f"{source}: gone from the part. {DAMAGED}")
        record = records.get(str(target))
        if record and sha256(source) != record["sha256"]:
            raise UserError(f"{source}: changed since its job wrote it. {DAMAGED}")
    for source, target in targets.items():
        with whole_file(target, source.stat().st_size) as part:
            shutil.copyfile(source, part)


def _read_leads(path: Path, experiment: str) -> dict[str, list[str]]:
    """The outputs that each folder of states leads to. Raises UserError for another folder."""
    if not path.is_file():
        raise UserError(f"{path}: gone from the part. {DAMAGED}")
    try:
        leads = TypeAdapter(dict[str, list[str]]).validate_json(path.read_bytes())
    except ValidationError as fault:
        raise UserError(
            f"{path}: expected outputs by folders of states, found otherwise "
            f"({fault.errors()[0]['msg']}). {DAMAGED}"
        ) from fault
    for state in leads:
        if Path(state).parent != Path(_state_root(experiment)) or ".." in Path(state).parts:
            raise UserError(f"{path}: {state!r} is no folder of states of {experiment}. {DAMAGED}")
    return leads


def _take_state(folder: Path, state: str, outputs: list[str]) -> bool:
    """Whether a training's last state was taken: not where the training is finished or further."""
    if all(map(os.path.exists, outputs)):
        return False
    found = folder / FILES / state
    new = {path.relative_to(found) for path in found.glob("*/update-*")}
    if not new:
        raise UserError(f"{found}: gone from the part. {DAMAGED}")
    here = {path.relative_to(state) for path in Path(state).glob("*/update-*")}
    further = {path for path in new if path > _newest(here, path.parent)}
    if not further:
        return False
    kept = {path: Path(state) / path.relative_to(found) for path in found.glob("*/kept/*")}
    _place(kept, {})
    for update in further:
        with whole_folder(Path(state) / update) as part:
            shutil.copytree(found / update, part, dirs_exist_ok=True)
    return True


def _newest(states: set[Path], training: Path) -> Path:
    """The last state of those of one training, whose folder is named by its settings and code."""
    return max((path for path in states if path.parent == training), default=training)


def main() -> None:
    """Read the arguments and give, or take, while no run is at work here."""
    parser = command.parser(__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    giving, taking = steps.add_parser("give"), steps.add_parser("take")
    for each in (giving, taking):
        each.add_argument("experiment")
    giving.add_argument("folder", type=Path, help="what is there is replaced")
    giving.add_argument("--states", action="store_true", help="of unfinished trainings, too")
    taking.add_argument("folders", type=Path, nargs="+")
    args = parser.parse_args()
    check_version()
    hold_folder()
    if args.step == "give":
        print(give(args.experiment, args.folder, args.states))
    else:
        print("\n".join(take(args.experiment, folder) for folder in args.folders))


if __name__ == "__main__":
    command.run(main)
