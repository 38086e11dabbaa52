"""A folder that can be written, by one run at a time; the kernel drops the lock with its run."""

import fcntl
import os
import sys
from pathlib import Path

from headcount.base.errors import EnvironmentFault

LOCK = Path(".snakemake/headcount.lock")
_held = []  # open files: closing one would drop its lock


def require_writable() -> None:
    """Leave with exit code 3 if this folder can't be written; Snakemake would show a traceback."""
    for folder in (Path(), LOCK.parent):
        if folder.exists() and not os.access(folder, os.W_OK):
            _leave(
                f"{folder.resolve()} is read-only, also for a dry run; copy the project elsewhere"
            )


def hold_folder() -> None:
    """Take the folder's lock until this process ends, or leave with exit code 3 naming the holder.

    Dry runs do not come here. A killed run leaves nothing behind that someone would have to remove.
    """
    LOCK.parent.mkdir(exist_ok=True)
    file = LOCK.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip() or "unknown"
        _leave(
            f"process {holder} is running this workflow in {Path.cwd()}; "
            "wait until it ends, or stop it"
        )
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    _held.append(file)


def _leave(message: str) -> None:
    print(f"error: {message}", file=sys.stderr, flush=True)
    os._exit(EnvironmentFault.exit_code)  # Snakemake would turn sys.exit into its own code
