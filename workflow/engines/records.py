"""Records of what made every output, and of its content when its job ended.

Snakemake records rule, command, code and inputs of an output in `.snakemake/metadata`. A note in
`.snakemake/contents` adds the SHA-256 of the output. A pack contains both, and DVC carries it with
the files. An output is read again only if its size, times or inode differ from the note; nobody can
set the time of the last change of an inode, so no edit hides behind `touch`.

Tested with Snakemake 9.27.1, and refused with another version: `_write_record` and
`_filter_incomplete_keys` are private, and `finished` is wrapped. `tests/workflow/test_records.py`
fails if one of them disappears.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from console import listed
from pydantic import Field, TypeAdapter, ValidationError
from snakemake.io import IOFile
from snakemake.persistence import RECORD_FORMAT_VERSION, MetadataRecord
from snakemake.persistence.file import FilePersistence

from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.files import remove_folder, sha256, write_json
from headcount.base.fingerprint import digest
from headcount.store.finished import FinishedSet

TESTED = "9.27.1"
NOTES = Path(".snakemake/contents")
_LATEST = 1e11  # seconds since 1970; no file can have a much later time

Record = dict[str, Any]


class _Packed(MetadataRecord):
    record_format_version: Literal[RECORD_FORMAT_VERSION]
    endtime: float = Field(gt=-_LATEST, lt=_LATEST)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


def check_version() -> None:
    """Raise EnvironmentFault if Snakemake has another version than the one tested."""
    if (installed := version("snakemake")) != TESTED:
        raise EnvironmentFault(
            f"snakemake {installed}: this workflow reads Snakemake's own records, and knows their "
            f"form in {TESTED} only; pip install snakemake=={TESTED}"
        )


def note_when_finished() -> None:
    """Have Snakemake note the content of outputs before it records that their job is done.

    Records and notes of a job that failed and left no outputs are removed.
    """
    check_version()
    plain = FilePersistence.finished

    async def finished(store, job) -> None:
        for output in job.output:
            note(output)
        await plain(store, job)
        for output in job.output:
            if not os.path.isfile(output):
                store.cleanup_metadata(output)

    FilePersistence.finished = finished


def note(path: str) -> None:
    """Note the content of a file. Forget that of a file that is gone."""
    if os.path.isfile(path):
        stamp = _stamp(path)
        _write(path, sha256(Path(path)), stamp)
    else:
        _place(path).unlink(missing_ok=True)


def noted(path: str) -> str | None:
    """Return the SHA-256 of what a file's job wrote, if it is known."""
    return _read(path).get("sha256")


def is_untouched(path: str) -> bool:
    """Return whether a file is the very one that was noted, by its size, times and inode."""
    return _read(path).get("stamp") == _stamp(path)


def is_as_noted(path: str) -> bool:
    """Return whether a file has the content that its job wrote."""
    known, stamp = _read(path), _stamp(path)
    if not known or known["stamp"] == stamp:
        return bool(known)
    if sha256(Path(path)) != known["sha256"]:
        return False
    _write(path, known["sha256"], stamp)  # touched, copied or restored by DVC
    return True


def content(path: str) -> str:
    """Return the SHA-256 of a file. It is read only if it may have changed since it was noted."""
    return _read(path)["sha256"] if is_untouched(path) else sha256(Path(path))


def own_content(path: str) -> str:
    """Return the SHA-256 of a file that no job makes, and note it."""
    if not is_untouched(path):
        note(path)
    return _read(path)["sha256"]


def records_of(outputs: Iterable[str]) -> dict[str, Record]:
    """Return Snakemake's records of outputs, with the SHA-256 of what their jobs wrote."""
    store = _store()
    known = {output: store.metadata(IOFile(output)) for output in sorted(outputs)}
    return {
        output: record.model_dump(exclude={"job_hash"}) | {"sha256": noted(output)}
        for output, record in known.items()
        if record
    }


def unfinished(outputs: Iterable[str]) -> set[str]:
    """Return the outputs whose job began but did not end. Snakemake makes them again."""
    return _store()._filter_incomplete_keys(outputs)


def finished(outputs: Iterable[str]) -> bool:
    """Return whether all outputs of a job are here, as it wrote them, and on record."""
    outputs = list(outputs)
    here = all(os.path.isfile(output) and is_as_noted(output) for output in outputs)
    return here and not unfinished(outputs) and len(records_of(outputs)) == len(outputs)


def pack_file(experiment: str, phase: str) -> Path:
    """Return the file with the records of a phase's outputs."""
    return Path(f"results/{experiment}/provenance/{phase}.json")


def write_pack(path: Path, outputs: Iterable[str]) -> None:
    """Write the records of outputs into a pack."""
    write_json(path, records_of(outputs))
    note(str(path))


def read_pack(path: Path) -> dict[str, Record]:
    """Return the records of a pack by output. Raise UserError for one that is damaged."""
    try:
        packed = TypeAdapter(dict[str, _Packed]).validate_json(path.read_bytes())
    except ValidationError as fault:
        first = fault.errors()[0]
        where = f"{first['loc'][0]}: " if first["loc"] else ""
        raise UserError(
            f"{path}: damaged, or of another version of this workflow ({where}{first['msg']}). "
            f"dvc checkout --force {path} restores the version in dvc.lock. If that does not help, "
            "delete the file: dvc repro writes it again, or names the files to make again"
        ) from fault
    return {output: record.model_dump(exclude={"job_hash"}) for output, record in packed.items()}


def take(records: Mapping[str, Record]) -> set[str]:
    """Adopt packed records of outputs that have the content they name. Return these outputs."""
    store, taken = _store(), set()
    for output, record in records.items():
        if os.path.isfile(output) and content(output) == record["sha256"]:
            os.utime(output, (record["endtime"], record["endtime"]))
            _write(output, record["sha256"], _stamp(output))
            store.cleanup_metadata(IOFile(output))  # of a job that was killed here
            store._write_record(output, MetadataRecord(**record))
            taken.add(output)
    return taken


def freshen(outputs: Iterable[str]) -> None:
    """Make inputs of these outputs look new if their content is not the recorded one."""
    read = {
        pair
        for record in records_of(outputs).values()
        for pair in (record["input_checksums"] or {}).items()
    }
    now = {path: f"sha256:{content(path)}" for path, _ in read if os.path.exists(path)}
    for path in {path for path, then in read if now.get(path, then) != then}:
        os.utime(path)


def forget_states(experiment: str) -> None:
    """Remove the states, of any settings, of finished trainings whose outputs are on record."""
    for copies in sorted(Path(f"results/{experiment}/state").glob("*/*/finished")):
        outputs = [path.as_posix() for path in FinishedSet(copies).outputs()]
        if outputs and finished(outputs):
            remove_folder(copies.parents[1])


def _store() -> FilePersistence:
    check_version()
    return FilePersistence(nolock=True)


def _place(path: str) -> Path:
    """Return the file of a note, under the path itself where it lies in the project."""
    inside = not os.path.isabs(path) and ".." not in Path(path).parts
    return NOTES / (path if inside else f"elsewhere/{digest(os.path.abspath(path))}")


def _stamp(path: str) -> list[int]:
    facts = os.stat(path)
    return [facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino]


def _read(path: str) -> dict[str, Any]:
    """Return a note, or nothing if there is none or if a power cut left it torn."""
    try:
        return json.loads(_place(path).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}


def _write(path: str, checksum: str, stamp: list[int]) -> None:
    """Write a note in one rename, as dry runs may read it, without waiting for the disk."""
    place = _place(path)
    part = place.with_name(f".part-{os.getpid()}-{place.name}"[:255])
    place.parent.mkdir(parents=True, exist_ok=True)
    part.write_text(json.dumps({"sha256": checksum, "stamp": stamp}))
    part.replace(place)


def settle(experiment: str, files: Sequence[str], trusted: bool) -> None:
    """Adopt records that DVC brought, and refuse `files` that no job left so, unless `trusted`."""
    files = [file for file in files if os.path.exists(file)]
    touched = [file for file in files if not is_untouched(file)]
    doubtful = [file for file in touched if not is_as_noted(file)]
    packed = _adopt(experiment, doubtful, files)
    if touched:
        freshen(files)
    doubtful = [file for file in doubtful if not is_as_noted(file)]
    if doubtful:
        doubtful = sorted(set(doubtful) - unfinished(doubtful))
    edited = [file for file in doubtful if noted(file) or file in packed]
    unknown = [file for file in doubtful if file not in edited and not trusted]
    if edited or unknown:
        known = packed | {file: record["rule"] for file, record in records_of(edited).items()}
        rules = {file: known.get(file, "unknown") for file in edited}
        raise UserError(_message(experiment, rules, unknown))


def _adopt(experiment: str, doubtful: Sequence[str], files: Sequence[str]) -> dict[str, str]:
    """Adopt records in packs that DVC brought and of doubtful files. Return rules by output."""
    # A writer that was killed leaves a pack whose name begins with a dot.
    packs = sorted(pack_file(experiment, "").parent.glob("[!.]*.json"))
    new = {str(path) for path in packs if not is_as_noted(str(path))}
    packed: dict[str, str] = {}
    for path in packs if doubtful or new else []:
        records = read_pack(path)
        packed |= {output: record["rule"] for output, record in records.items()}
        # No other file than those of the experiment, whatever a pack names.
        wanted = {*records} & {*(files if str(path) in new else doubtful)}
        take({output: records[output] for output in wanted})
        note(str(path))
    return packed


def _message(experiment: str, edited: Mapping[str, str], unknown: Sequence[str]) -> str:
    faults = [f"{file}: changed since rule {rule} wrote it" for file, rule in edited.items()]
    faults += [f"{file}: no record says what made it" for file in unknown]
    remedy = (
        "Was .snakemake lost, and are the files right? Then snakemake --touch --forceall "
        f"--cores 1 --config experiment={experiment}"
    )
    return (
        f"{len(faults)} file(s) are not what the jobs of {experiment} wrote; no job was run:\n"
        f"  {listed(faults)}\n"
        "Delete a file, and the same command makes it again, with all that depends on it. Keep a "
        "version of your own under another name. After a change of branch or commit: dvc checkout."
        + f"\n{remedy}"
        * bool(unknown)
    )
