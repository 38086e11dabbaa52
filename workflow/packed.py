"""Records of what made each file, packed by phase: so they travel through DVC with the files."""

import json
import os
import re
from pathlib import Path
from typing import Any

import contents
from engine import Record, is_record, read_records, write_records
from phases import Phase, declared, records_file

from headcount.base.errors import UserError
from headcount.base.files import sha256, write_json

UNPACKED = Path(".snakemake/unpacked.json")  # which packs were unpacked here, by checksum
LATEST = 1e11  # seconds since 1970; no file can have a much later time
_CHECKSUM = re.compile(r"[0-9a-f]{64}")


def pack(experiment: str, phase: str, outputs: list[str]) -> None:
    """Write the records of a phase's files, each with the checksum of what its job wrote."""
    records = {
        output: record | {"sha256": contents.recorded(output)}
        for output, record in read_records(outputs).items()
    }
    path = records_file(experiment, phase)
    write_changed(path, records)
    _remember([path])


def unpack(experiment: str, files: list[str]) -> None:
    """Give Snakemake the records that came by `dvc pull` or `dvc checkout`, if any did.

    `files`: what the experiment consists of. A record is taken for a file that holds what it says,
    and for one of which nothing is known here. The files get the times at which they were made, so
    that they stand in the right order without a checksum of every model. Raises UserError naming a
    pack that is damaged.
    """
    packed = _packs(experiment)
    if not packed:
        return
    known = _known()
    new = [path for path in packed if known.get(str(path)) != sha256(path)]
    if not new:
        return
    phases = declared(experiment)
    for path in new:
        for output, record in _read(path, phases).items():
            if os.path.exists(output) and contents.content(output) == record["sha256"]:
                os.utime(output, (record["endtime"], record["endtime"]))
                take(output, record)
            elif contents.recorded(output) is None:
                contents.expect(output, record["sha256"])
                write_records({output: record})
    freshen(read_records(files))
    _remember(new)


def packed_records(experiment: str) -> dict[str, Record]:
    """The records of every pack that is here. Raises UserError naming one that is damaged."""
    phases = declared(experiment)
    packs = [_read(path, phases) for path in _packs(experiment)]
    return {output: record for records in packs for output, record in records.items()}


def take(output: str, record: Record) -> bool:
    """Take over a packed record if it is that of the file; returns whether it is.

    The file keeps its time. Newer than what reads it, it has Snakemake compare contents.
    """
    taken = contents.take(output, record["sha256"])
    if taken:
        write_records({output: record})
    return taken


def freshen(records: dict[str, Record]) -> None:
    """Make every input whose content is not the recorded one look new.

    Snakemake compares contents only of inputs that are newer than the outputs.
    """
    read = {
        pair for record in records.values() for pair in (record["input_checksums"] or {}).items()
    }
    now = {path: f"sha256:{contents.content(path)}" for path, _ in read if os.path.exists(path)}
    for path in {path for path, then in read if now.get(path, then) != then}:
        os.utime(path)


def write_changed(path: Path, value: object) -> None:
    """Write JSON unless it is there already, so that its time says when it changed."""
    try:
        same = json.loads(path.read_bytes()) == value
    except (FileNotFoundError, ValueError):
        same = False
    if not same:
        write_json(path, value)


def _packs(experiment: str) -> list[Path]:
    return sorted(records_file(experiment, "").parent.glob("*.json"))


def _read(path: Path, phases: dict[str, Phase]) -> dict[str, Record]:
    """A pack's records. Raises UserError unless they are whole, and of the phase's own files."""
    phase = phases.get(path.stem)
    if phase is None:
        raise _damaged(path, f"dvc.yaml has no phase {path.stem}")
    try:
        records = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as fault:
        raise _damaged(path, str(fault)) from fault
    if not isinstance(records, dict):
        raise _damaged(path, "expected a record for each file")
    for output, record in records.items():
        if not phase.owns(output):
            raise _damaged(path, f"{output} is no file of phase {phase.name}")
        if not _is_whole(record):
            raise _damaged(path, f"{output}: damaged, or of another version of this workflow")
        for read in record["input_checksums"] or {}:
            if not phase.sees(read):
                raise _damaged(path, f"{read} is no file that phase {phase.name} reads")
    return records


def _is_whole(record: Any) -> bool:
    return (
        is_record(record)
        and abs(record["endtime"]) < LATEST
        and isinstance(record.get("sha256"), str)
        and _CHECKSUM.fullmatch(record["sha256"]) is not None
    )


def _damaged(path: Path, reason: str) -> UserError:
    return UserError(
        f"{path}: expected the records of a phase, found: {reason}. "
        f"dvc checkout --force {path} brings back what dvc.lock names; if that is no better, "
        "delete it: dvc repro writes it again, or names the files to make again"
    )


def _known() -> dict[str, str]:
    if not UNPACKED.exists():
        return {}
    try:
        known = json.loads(UNPACKED.read_bytes())
    except ValueError as fault:
        raise UserError(f"{UNPACKED}: damaged ({fault}); delete it, nothing is lost") from fault
    if not isinstance(known, dict):
        raise UserError(f"{UNPACKED}: damaged (no list of files); delete it, nothing is lost")
    return known


def _remember(packed: list[Path]) -> None:
    write_json(UNPACKED, _known() | {str(path): sha256(path) for path in packed})
