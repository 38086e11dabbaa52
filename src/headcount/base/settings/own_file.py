"""Files of one's own that corpora.yaml names: whether each is there, and what is there instead."""

import os
from pathlib import Path

from headcount.base.errors import UserError
from headcount.base.settings.names import closest


def check_own_file(path: str) -> None:
    """Raise UserError unless a path leads to a file, with the nearest path that exists."""
    if os.path.isfile(path):
        return
    if os.path.isdir(path):
        found = "found a folder"
    elif os.path.islink(path):
        found = f"found a link to {os.readlink(path)} that leads to no file"
    else:
        found = "found none"
    near = _nearest(Path(path))
    hint = f"; nearest: {near}" if near else ""
    raise UserError(
        f"{path}: expected a file of your own, {found}{hint}; correct the path in "
        "config/corpora.yaml, or put the file there"
    )


def _nearest(path: Path) -> Path | None:
    """The path with the first part that does not exist replaced by the name most like it."""
    while not os.path.isdir(path.parent):
        path = path.parent
    readable = os.access(path.parent, os.R_OK)
    names = os.listdir(path.parent) if readable else []
    close = closest(path.name, (name for name in names if name != path.name))
    return path.parent / close if close else None
