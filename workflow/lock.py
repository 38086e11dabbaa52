"""Folders that can be written, by one run at a time; the kernel drops the lock with its run."""

import os
from pathlib import Path

from leaving import leave

from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.files import hold

LOCK = Path(".headcount.lock")  # not in .snakemake, which people delete when they look for locks
_held = []  # open files: closing one would drop its lock


def require_writable(experiment: str) -> None:
    """Raise EnvironmentFault if a folder can't be written; Snakemake would show a traceback."""
    for folder in (".", ".snakemake", "data", "results", f"results/{experiment}"):
        if os.path.exists(folder) and not os.access(folder, os.W_OK):
            raise EnvironmentFault(
                f"{Path(folder).resolve()} is read-only, and a dry run needs to write too; "
                "make it writable, or copy the project elsewhere"
            )


def require_folders(*names: str) -> None:
    """Raise UserError if one of these is there but is no folder, nor a link to one."""
    for path in map(Path, names):
        if path.is_symlink() and not path.exists():
            target = os.readlink(path)
            raise UserError(
                f"{path}: expected a folder, found a link to {target}, which leads nowhere; "
                "make that folder, or remove the link"
            )
        if path.exists() and not path.is_dir():
            raise UserError(f"{path}: expected a folder, found a file; move it elsewhere")


def hold_folder() -> None:
    """Take the folder's lock until this process ends, or leave with exit code 3 naming the holder.

    Dry runs do not come here. A killed run leaves nothing behind that someone would have to remove.
    """
    try:
        _held.append(hold(LOCK, f"running this workflow in {Path.cwd()}"))
    except EnvironmentFault as fault:
        leave(fault)
