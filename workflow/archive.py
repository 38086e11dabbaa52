"""Archives of finished runs, a file for each pair, run and seed: what is small, never a model.

They lie in docs/results/<experiment>/kept, so Git moves them. docs/guides/elsewhere.md says how.
"""

import csv
import hashlib
import io
import json
import lzma
import re
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from engine import Record, parse_records

from headcount.base.errors import UserError
from headcount.base.files import write_bytes
from headcount.base.folders import DESCRIPTION

RESULTS = Path("docs/results")
ENDS = {".csv", ".json", ".jsonl", ".txt"}
"""Of files that are kept; weights are not, nor what else lies in a model's folder."""
ABOUT, RECORDS = "about.json", "records.json"
DAMAGED = "Bring it back by git checkout, or delete it and keep the run again"


class Run(NamedTuple):
    """What an archive is of."""

    pair: str
    run: str
    seed: int

    def __str__(self) -> str:
        return listed_runs([self])


def listed_runs(runs: Iterable[Run]) -> str:
    """Runs in words: those of one pair and seed together, and seeds that have the same."""
    names: dict[tuple[str, int], list[str]] = {}
    for run in runs:
        names.setdefault((run.pair, run.seed), []).append(run.run)
    seeds: dict[tuple[str, str], list[str]] = {}
    for (pair, seed), found in names.items():
        seeds.setdefault((pair, ", ".join(found)), []).append(str(seed))
    return "; ".join(
        f"{found}, seed{'s' * (len(of) > 1)} {', '.join(of)} of {pair}"
        for (pair, found), of in seeds.items()
    )


class Archive(NamedTuple):
    """A finished run."""

    about: dict[str, Any]
    """Machine, commit and day, in words; the settings of the experiment."""

    records: dict[str, Record]
    """Snakemake's records by file, each with the file's SHA-256; weights have one, benchmarks none.

    Of a file that is not here Snakemake wants a record too, or it makes the whole job again.
    """

    files: dict[str, bytes]
    """Contents by path, `results/<experiment>/…`."""

    def described(self) -> dict[str, Any]:
        """The description of its model; empty where the run has none of its own."""
        found = [path for path in self.files if path.endswith(f"/model/{DESCRIPTION}")]
        return json.loads(self.files[found[-1]]) if found else {}

    def number_format(self) -> str:
        """The format in which its training multiplied matrices; empty where it has no model."""
        return self.described().get("precision", "")

    def last_update(self) -> int:
        """The update at which its training was validated last. Raises UserError without a curve."""
        found = [text for path, text in self.files.items() if path.endswith("/curves.csv")]
        if not found:
            run = Run(*(self.about[key] for key in Run._fields))
            raise UserError(f"the kept {run}: expected curves.csv, found none. {DAMAGED}")
        return int(list(csv.DictReader(found[-1].decode().splitlines()))[-1]["step"])


def run_of_result(path: str, experiment: str) -> Run | None:
    """The run in whose folder a result lies, `results/…/<phase>/<pair>/<run>/seed<k>`."""
    found = re.match(rf"results/{re.escape(experiment)}/\w+/([^/]+)/([^/]+)/seed(\d+)/", path)
    return Run(found[1], found[2], int(found[3])) if found else None


def is_kept(path: str) -> bool:
    """Whether an archive has such a file."""
    name = Path(path)
    return name.suffix in ENDS and (name.parent.name != "model" or name.name == DESCRIPTION)


def checksums(records: dict[str, Record]) -> dict[str, str]:
    """What each file is known by to the jobs that read it."""
    return {path: f"sha256:{record['sha256']}" for path, record in records.items()}


def made_from_others(
    records: dict[str, Record], known: dict[str, str]
) -> Iterator[tuple[str, str]]:
    """Files that were made from another version of an input than the one known, with that input."""
    for path, record in records.items():
        for read, checksum in (record["input_checksums"] or {}).items():
            if known.get(read, checksum) != checksum:
                yield path, read


def archive_path(experiment: str, run: Run) -> Path:
    """Where the archive of a run lies."""
    return RESULTS / experiment / "kept" / run.pair / f"{run.run}.seed{run.seed}.tar.xz"


def write_archive(path: Path, archive: Archive) -> None:
    """Write an archive, whole or not at all; the same one has the same bytes."""
    members = {ABOUT: _as_json(archive.about), RECORDS: _as_json(archive.records)} | archive.files
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz", preset=9) as tar:
        for name, content in sorted(members.items()):
            member = tarfile.TarInfo(name)  # no time and no owner
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    write_bytes(path, packed.getvalue())


def unpack(files: dict[str, bytes], folder: Path) -> None:
    """Write files below a folder that is new."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def read_archives(experiment: str, runs: Iterable[Run] = ()) -> dict[Run, Archive]:
    """Archives of these runs, or of all. Raises UserError where there is none."""
    named = [archive_path(experiment, run) for run in runs]
    paths = named or sorted((RESULTS / experiment / "kept").glob("*/[!.]*.tar.xz"), key=_place)
    if not paths or not all(path.is_file() for path in paths):
        missing = next(
            (path for path in paths if not path.is_file()), RESULTS / experiment / "kept"
        )
        raise UserError(f"{missing}: expected finished runs, found none; kept.py keep keeps them")
    return {_run_of(path): _read(path, experiment) for path in paths}


def _place(path: Path) -> tuple[str, str, int]:
    return tuple(_run_of(path))


def _run_of(path: Path) -> Run:
    run, _, seed = path.name.removesuffix(".tar.xz").rpartition(".seed")
    if not (run and seed.isdecimal()):
        raise UserError(f"{path}: expected the name <run>.seed<k>.tar.xz. {DAMAGED}")
    return Run(path.parent.name, run, int(seed))


def _read(path: Path, experiment: str) -> Archive:
    """One archive. Raises UserError unless it is whole, and of its run alone."""
    try:
        members = _members(path)
        archive = Archive(
            json.loads(members.pop(ABOUT)), parse_records(members.pop(RECORDS)), members
        )
        _check(archive, _run_of(path), experiment)
    except (KeyError, ValueError, OSError, lzma.LZMAError, tarfile.TarError) as fault:
        raise UserError(f"{path}: expected an archive of a run: {fault}. {DAMAGED}") from fault
    return archive


def _members(path: Path) -> dict[str, bytes]:
    """Contents by name. They are read, never unpacked: names lead nowhere."""
    whole = io.BytesIO(lzma.decompress(path.read_bytes()))  # tarfile would miss a torn end
    with tarfile.open(fileobj=whole, mode="r:") as tar:
        return {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}


def _check(archive: Archive, run: Run, experiment: str) -> None:
    """Raise ValueError for a file that is not the run's, or is not what its job wrote."""
    for path, content in archive.files.items():
        benchmark = path.startswith(f"results/{experiment}/benchmarks/")
        if ".." in Path(path).parts or not (benchmark or run_of_result(path, experiment) == run):
            raise ValueError(f"{path} is no file of {run}")
        if not benchmark and archive.records[path]["sha256"] != hashlib.sha256(content).hexdigest():
            raise ValueError(f"{path} is not what its job wrote")
    if foreign := [path for path in archive.records if run_of_result(path, experiment) != run]:
        raise ValueError(f"{foreign[0]} is no file of {run}")
    if lacking := set(filter(is_kept, archive.records)) - set(archive.files):
        raise ValueError(f"{min(lacking)} is gone")
    for path, read in made_from_others(archive.records, checksums(archive.records)):
        raise ValueError(f"{path} was made from another {read} than the one that is kept")


def _as_json(value: Any) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).encode()
