"""Folders that can be written, by one run at a time; the kernel drops the lock with its run."""

import fcntl
import os
from pathlib import Path

from leaving import leave

from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.files import hold

LOCK = Path(".headcount.lock")  # not in .snakemake, which people delete when they look for locks
_held = []  # open files: closing one would drop its lock
_noted = []  # the lock's state as this run began to plan


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
    A plan that `note_lock` saw another run beside is out of date: Snakemake would take what that
    one has finished for files that lie in its way, and make them again.
    """
    try:
        now = (False, _state()[1])  # free, as it is once it can be taken here
        outdated = any(then != now for then in _noted)
        _held.append(hold(LOCK, f"running this workflow in {Path.cwd()}"))
        if outdated:
            raise EnvironmentFault(
                f"another run in {Path.cwd()} has ended while this one planned its jobs; give the "
                "same command again, and it goes on from what is there now"
            )
    except EnvironmentFault as fault:
        leave(fault)


def note_lock() -> None:
    """Note whether another run is at work, before anything is planned from what lies here."""
    _noted.append(_state())


def _state() -> tuple[bool, int]:
    """Whether the lock is held, and when it was taken last, in nanoseconds; 0 for never."""
    try:
        with LOCK.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False, os.fstat(file.fileno()).st_mtime_ns
    except BlockingIOError:
        return True, LOCK.stat().st_mtime_ns
    except OSError:  # there is none, or one that `hold_folder` will tell of
        return False, 0
