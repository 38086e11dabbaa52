"""Models of the Hugging Face library, fetched file by file or copied from a folder."""

import fnmatch
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.files import check_apart, read_json, sha256, write_json
from headcount.base.folders import PRETRAINED_SOURCES
from headcount.base.settings.checking import checked, keyed
from headcount.base.settings.pretrained import WEIGHTS, Origin
from headcount.base.settings.sources import File
from headcount.data.fetching.download import fetch_file
from headcount.data.fetching.transfer import LOCK, fetch

HUB = "https://huggingface.co"
RECORD = "manifest.json"
"""Name of the record beside a fetched model: SHA-256 by file name."""
_LISTED = ".fetched"
"""Name of a list of these files beside the record, which an engine may remove before a job."""


def fetch_model(name: str, entry: Mapping[str, Any], folder: Path) -> None:
    """Fetch every file of a model into `folder`, then write their checksums.

    `name`: its folder in a mirror. Without files in its entry, all are taken that a model is read
    from. Files of an earlier model are removed.
    """
    given = checked(Origin, entry, lambda path: f"{name}: {keyed(path)}")
    check_apart(folder, [Path(given.path)] if given.path else [])
    if given.hub and not given.files:
        names = fetch_commit(given.hub, given.revision, folder)
    else:
        names = [*(files := given.files or _own_files(Path(given.path)))]
        for file, expected in files.items():
            own = f"{given.path}/{file}" if given.path else None
            url = None if own else f"{HUB}/{given.hub}/resolve/{given.revision}/{file}"
            source = File.model_construct(url=url, path=own, sha256=expected)
            fetch_file(name, source, folder / file, LOCK)
    listed, sums = folder / _LISTED, {name: sha256(folder / name) for name in names}
    for old in set(read_json(listed) if listed.exists() else []) - sums.keys():
        (folder / old).unlink(missing_ok=True)
    write_json(listed, sorted(sums))
    origin = {"model": given.hub or given.path, "revision": given.revision}
    write_json(folder / RECORD, {**origin, "files": sums})


def fetch_commit(hub: str, revision: str, folder: Path) -> list[str]:
    """Fetch a commit's files of a model, without checksums, and return their names."""
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
    sources = (name for kind in PRETRAINED_SOURCES for name in fnmatch.filter(names, kind))
    taken = [name for name in sources if "/" not in name]
    for name in taken:
        fetch(f"{HUB}/{hub}/resolve/{revision}/{name}", folder / name, False, lambda part: None)
    return taken


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
