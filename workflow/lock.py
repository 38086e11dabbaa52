"""Folders that can be written, by one run at a time; the kernel drops the lock with its run."""

import os
import sys
from pathlib import Path
from typing import NoReturn

from headcount.base.errors import EnvironmentFault, HeadcountError, UserError
from headcount.base.lock import hold

LOCK = Path(".snakemake/headcount.lock")
_held = []  # open files: closing one would drop its lock


def require_writable() -> None:
    """Leave with exit code 3 if this folder can't be written; Snakemake would show a traceback."""
    for folder in (Path(), LOCK.parent):
        if folder.exists() and not os.access(folder, os.W_OK):
            where = folder.resolve()
            _leave(
                EnvironmentFault(
                    f"{where} is read-only, also for a dry run; copy the project elsewhere"
                )
            )


def require_folders(*names: str) -> None:
    """Leave with exit code 2 if one of these is there but is no folder, nor a link to one."""
    for path in map(Path, names):
        if path.is_symlink() and not path.exists():
            target = os.readlink(path)
            _leave(
                UserError(
                    f"{path}: expected a folder, found a link to {target}, which leads nowhere; "
                    "make that folder, or remove the link"
                )
            )
        if path.exists() and not path.is_dir():
            _leave(UserError(f"{path}: expected a folder, found a file; move it elsewhere"))


def hold_folder() -> None:
    """Take the folder's lock until this process ends, or leave with exit code 3 naming the holder.

    Dry runs do not come here. A killed run leaves nothing behind that someone would have to remove.
    """
    try:
        _held.append(hold(LOCK, f"running this workflow in {Path.cwd()}"))
    except EnvironmentFault as fault:
        _leave(fault)


def _leave(fault: HeadcountError) -> NoReturn:
    print(f"error: {fault}", file=sys.stderr, flush=True)
    os._exit(fault.exit_code)  # Snakemake would turn sys.exit into its own code
