"""Translation models of the Hugging Face library, fetched file by file or copied from a folder."""

import tempfile
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.files import check_apart, read_json, sha256, write_json
from headcount.base.folders import PRETRAINED_SOURCES
from headcount.base.settings.pretrained import WEIGHTS, Origin, PretrainedFiles
from headcount.base.settings.reading.faults import checked, keyed
from headcount.data.fetching.checksums import LOCK
from headcount.data.fetching.download import RawFile, fetch_file
from headcount.data.fetching.transfer import fetch

HUB = "https://huggingface.co"
SETTINGS = "config/models.yaml"
RECORD = "manifest.json"
"""Beside the files of a model that was fetched: their SHA-256, by name."""
_LISTED = ".fetched"
"""Beside that record: the names alone, which outlive it."""


def fetch_model(name: str, entry: Mapping[str, Any], folder: Path) -> None:
    """Fetch every file of a model into `folder`, then write the record of their checksums there.

    `entry` holds origin and files of a model in models.yaml. Of a folder of one's own all files are
    copied that a model may be read from, where it names none. If the environment variable
    HEADCOUNT_MIRROR names a folder, files of the hub are taken from its folder `pretrained.<name>`
    and never from the network. Raises UserError for a faulty entry or own file, EnvironmentFault if
    a file of the hub cannot be had. What was in the folder before then stays.
    """
    given = checked(PretrainedFiles, entry, lambda path: f"{name}: {keyed(path)}")
    check_apart(folder, [Path(given.path)] if given.path else [])
    wanted = given.files or _all_of(Path(given.path))
    for file, expected in wanted.items():
        own = f"{given.path}/{file}" if given.path else None
        url = None if own else f"{HUB}/{given.hub}/resolve/{given.revision}/{file}"
        raw = RawFile(file, expected, None, None, url, own, SETTINGS)
        fetch_file(f"pretrained.{name}", raw, folder / file, LOCK)
    origin = {"model": given.hub or given.path, "revision": given.revision}
    write_record(folder, origin, wanted)


def write_record(folder: Path, origin: dict[str, Any], names: Iterable[str]) -> None:
    """Write the record of a model's files in a folder, after `origin`.

    Files that were put there for a model before and are none of these go: a reader would take them
    for the model's. Their names lie beside the record, which an engine may remove before a job.
    """
    listed, files = folder / _LISTED, {name: sha256(folder / name) for name in names}
    for name in set(read_json(listed) if listed.exists() else []) - files.keys():
        (folder / name).unlink(missing_ok=True)
    write_json(listed, sorted(files))
    write_json(folder / RECORD, {**origin, "files": files})


def fetch_commit(hub: str, revision: str, folder: Path) -> None:
    """Fetch what a model may be read from, of one commit of the hub: its checksums are unknown yet.

    What other files there are is left alone. Raises UserError for no whole commit and for a model
    without weights as safetensors, EnvironmentFault if the hub cannot be reached.
    """
    checked(Origin, {"hub": hub, "revision": revision}, lambda path: f"--{keyed(path)}")
    address = f"{HUB}/api/models/{hub}/revision/{revision}"
    with tempfile.TemporaryDirectory() as aside:
        listing = Path(aside, "listing.json")
        fetch(address, listing, False, lambda part: None)
        try:
            names = [each["rfilename"] for each in read_json(listing)["siblings"]]
        except (ValueError, TypeError, KeyError) as fault:
            raise EnvironmentFault(f"{address}: expected a list of files, found none") from fault
    if WEIGHTS not in names:
        raise _no_weights(f"{hub} of {revision}", names)
    for name in names:
        if "/" not in name and any(fnmatch(name, kind) for kind in PRETRAINED_SOURCES):
            url = f"{HUB}/{hub}/resolve/{revision}/{name}"
            fetch(url, folder / name, False, lambda part: None)


def _no_weights(place: Path | str, names: Iterable[str]) -> UserError:
    return UserError(
        f"{place}: expected weights as {WEIGHTS}, found {', '.join(names) or 'none'}; pickled "
        "weights (.bin, .pt) can run code and are not read. Save the model as safetensors"
    )


def _all_of(folder: Path) -> dict[str, None]:
    """Names of the files of one's own model. Raises UserError where there are no weights."""
    paths = (path for kind in PRETRAINED_SOURCES for path in folder.glob(kind))
    found = sorted(path.name for path in paths if path.name != RECORD)
    if WEIGHTS not in found:
        raise _no_weights(folder, found)
    return dict.fromkeys(found)


def check_record(folder: Path) -> None:
    """Raise UserError for a file in a folder that is not as its record says, if it has one."""
    record = folder / RECORD
    for name, expected in (read_json(record)["files"] if record.exists() else {}).items():
        path = folder / name
        found = sha256(path) if path.is_file() else "no such file"
        if found != expected:
            raise UserError(
                f"{path}: changed since it was fetched. Expected SHA-256 {expected}, found "
                f"{found}; delete {record}, and the same command fetches it again"
            )
