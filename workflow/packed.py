"""Records of what made each file, packed by phase: so they travel through DVC with the files."""

import json
import os
from contextlib import suppress
from pathlib import Path

import contents
from engine import Record, parse_records, read_records, write_records
from phases import Phase, declared, records_file

from headcount.base.errors import UserError
from headcount.base.files import sha256, write_json

UNPACKED = Path(".snakemake/unpacked.json")  # which packs were unpacked here, by checksum


def pack(experiment: str, phase: str, outputs: list[str]) -> None:
    """Write the records of a phase's files, each with the checksum of what its job wrote."""
    path = records_file(experiment, phase)
    write_changed(path, records_of(outputs))
    _remember([path])


def records_of(outputs: list[str]) -> dict[str, Record]:
    """Snakemake's records of files, each with the checksum of what its job wrote."""
    return {
        output: record | {"sha256": contents.recorded(output)}
        for output, record in read_records(outputs).items()
    }


def unpack(experiment: str, files: list[str]) -> None:
    """Give Snakemake the records that came by `dvc pull` or `dvc checkout`, if any did.

    `files`: what the experiment consists of. A record is taken for a file that holds what it says,
    and for one of which nothing is known here. The files get the times at which they were made, so
    that they stand in the right order without a checksum of every model. Raises UserError naming a
    pack that is damaged.
    """
    packs = _packs(experiment)
    known = _known() if packs else {}
    new = [path for path in packs if known.get(str(path)) != sha256(path)]
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
    freshen(files)
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


def freshen(outputs: list[str]) -> None:
    """Make every input of these files look new whose content is not the recorded one.

    Snakemake compares contents only of inputs that are newer than the outputs.
    """
    records = read_records(outputs).values()
    read = {pair for record in records for pair in (record["input_checksums"] or {}).items()}
    now = {path: f"sha256:{contents.content(path)}" for path, _ in read if os.path.exists(path)}
    for path in {path for path, then in read if now.get(path, then) != then}:
        os.utime(path)


def write_changed(path: Path, value: object) -> None:
    """Write JSON unless it is there already, so that its time says when it changed."""
    with suppress(FileNotFoundError, ValueError):
        if json.loads(path.read_bytes()) == value:
            return
    write_json(path, value)


def _packs(experiment: str) -> list[Path]:
    # Not those whose name begins with a dot, which a writer that was killed leaves.
    return sorted(records_file(experiment, "").parent.glob("[!.]*.json"))


def read_pack(path: Path, phases: dict[str, Phase], advice: str) -> dict[str, Record]:
    """A pack's records.

    Raises UserError, with this advice, unless they are whole and of the phase's own files.
    """
    try:
        if path.stem not in phases:
            raise ValueError(f"dvc.yaml has no phase {path.stem}")
        records, phase = parse_records(path.read_bytes()), phases[path.stem]
        for output, record in records.items():
            if not phase.owns(output):
                raise ValueError(f"{output} is no file of phase {phase.name}")
            for read in record["input_checksums"] or {}:
                if not phase.sees(read):
                    raise ValueError(f"{read} is no file that phase {phase.name} reads")
    except ValueError as fault:
        raise UserError(
            f"{path}: expected the records of a phase, found: {fault}. {advice}"
        ) from fault
    return records


def _read(path: Path, phases: dict[str, Phase]) -> dict[str, Record]:
    """The records of a pack that DVC keeps. Raises UserError as `read_pack` does."""
    advice = (
        f"dvc checkout --force {path} brings back what dvc.lock names; if that is no better, "
        "delete it: dvc repro writes it again, or names the files to make again"
    )
    return read_pack(path, phases, advice)


def _known() -> dict[str, str]:
    if not UNPACKED.exists():
        return {}
    known = None
    with suppress(ValueError):
        known = json.loads(UNPACKED.read_bytes())
    if not isinstance(known, dict):
        raise UserError(f"{UNPACKED}: damaged; delete it, nothing is lost")
    return known


def _remember(packed: list[Path]) -> None:
    write_json(UNPACKED, _known() | {str(path): sha256(path) for path in packed})
