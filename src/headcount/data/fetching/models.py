"""Translation models of the Hugging Face library, fetched file by file or copied from a folder."""

import tempfile
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.files import check_apart, read_json, sha256, write_json
from headcount.base.folders import PRETRAINED_SOURCES
from headcount.base.settings.checking import checked, keyed
from headcount.base.settings.pretrained import WEIGHTS, Origin, PretrainedFiles
from headcount.data.fetching.download import RawFile, fetch_file
from headcount.data.fetching.transfer import LOCK, fetch

HUB = "https://huggingface.co"
RECORD = "manifest.json"
"""Name of the record beside a fetched model: SHA-256 by file name."""
_LISTED = ".fetched"
"""Name of a list of these files beside the record, which an engine may remove before a job."""


def fetch_model(name: str, entry: Mapping[str, Any], folder: Path) -> None:
    """Fetch every file of a model of models.yaml into `folder`, then write their checksums.

    Without files in its entry, all of a person's own folder that a model is read from are copied.
    A mirror has the files of the hub in `pretrained.<name>`. Raises as `fetch_corpus`.
    """
    given = checked(PretrainedFiles, entry, lambda path: f"{name}: {keyed(path)}")
    check_apart(folder, [Path(given.path)] if given.path else [])
    for file, expected in (files := given.files or _own_files(Path(given.path))).items():
        own = f"{given.path}/{file}" if given.path else None
        url = None if own else f"{HUB}/{given.hub}/resolve/{given.revision}/{file}"
        raw = RawFile(file, url, own, expected)
        fetch_file(f"pretrained.{name}", raw, folder / file, LOCK)
    write_record(folder, {"model": given.hub or given.path, "revision": given.revision}, files)


def write_record(folder: Path, origin: dict[str, Any], names: Iterable[str]) -> None:
    """Write `origin` and checksums of a model's files, and remove files of an earlier model."""
    listed, files = folder / _LISTED, {name: sha256(folder / name) for name in names}
    for name in set(read_json(listed) if listed.exists() else []) - files.keys():
        (folder / name).unlink(missing_ok=True)
    write_json(listed, sorted(files))
    write_json(folder / RECORD, {**origin, "files": files})


def fetch_commit(hub: str, revision: str, folder: Path) -> None:
    """Fetch the files of one commit of the hub that a model may be read from, without checksums.

    Raises UserError for a shortened commit and for a model without weights as safetensors,
    EnvironmentFault if the hub is not available.
    """
    checked(Origin, {"hub": hub, "revision": revision}, lambda path: f"--{keyed(path)}")
    address = f"{HUB}/api/models/{hub}/revision/{revision}"
    with tempfile.TemporaryDirectory() as aside:
        listing = Path(aside, "listing.json")
        fetch(address, listing, False, lambda part: None)
        try:
            names = [sibling["rfilename"] for sibling in read_json(listing)["siblings"]]
        except (ValueError, TypeError, KeyError) as fault:
            raise EnvironmentFault(f"{address}: expected a list of files, found none") from fault
    _check_weights(f"{hub} of {revision}", names)
    for name in names:
        if "/" not in name and any(fnmatch(name, kind) for kind in PRETRAINED_SOURCES):
            url = f"{HUB}/{hub}/resolve/{revision}/{name}"
            fetch(url, folder / name, False, lambda part: None)


def _own_files(folder: Path) -> dict[str, None]:
    paths = (path for kind in PRETRAINED_SOURCES for path in folder.glob(kind))
    names = sorted(path.name for path in paths if path.name != RECORD)
    _check_weights(str(folder), names)
    return dict.fromkeys(names)


def _check_weights(place: str, names: list[str]) -> None:
    if WEIGHTS not in names:
        listed = ", ".join(names) or "none"
        advice = "pickled weights can run code; save the model as safetensors"
        raise UserError(f"{place}: expected weights as {WEIGHTS}, found {listed}; {advice}")


def check_record(folder: Path) -> None:
    """Raise UserError for a file in a folder that differs from its record, if it has one."""
    record = folder / RECORD
    for name, expected in (read_json(record)["files"] if record.exists() else {}).items():
        path = folder / name
        actual = sha256(path) if path.is_file() else "no such file"
        if actual != expected:
            change = f"changed since it was fetched, from SHA-256 {expected} to {actual}"
            raise UserError(f"{path}: {change}; delete {record} and run the same command again")
