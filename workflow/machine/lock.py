"""The project's folder: it can be written, and by one run at a time."""

import fcntl
import os
from pathlib import Path

from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.files import hold

LOCK = Path(".headcount.lock")  # not in .snakemake, which people delete when they look for locks
_held = []  # open files: closing one would drop its lock


def require_folders(experiment: str) -> None:
    """Raise a fault for folders that can't be written, where Snakemake would show a traceback."""
    for folder in (".", ".snakemake", "data", "results", f"results/{experiment}"):
        if os.path.lexists(folder) and not os.path.isdir(folder):
            raise UserError(
                f"{folder}: expected a folder, found a file, or a link that leads nowhere; move it "
                "elsewhere, or make the folder that it leads to"
            )
        if os.path.exists(folder) and not os.access(folder, os.W_OK):
            raise EnvironmentFault(
                f"{Path(folder).resolve()} is read-only, and a dry run needs to write too; "
                "make it writable, or copy the project elsewhere"
            )


def is_held() -> bool:
    """Return whether another run works in this folder."""
    try:
        with LOCK.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except BlockingIOError:
        return True
    except OSError:  # no lock yet, or one that `hold_folder` reports
        return False


def hold_folder(held_before: bool = False) -> None:
    """Take the folder's lock until this process ends. The kernel drops it however it ends.

    `held_before`: another run worked here when this one began to plan. Raises EnvironmentFault
    then, or if it still works: Snakemake would make again what the other run has finished.
    """
    _held.append(hold(LOCK, f"running this workflow in {Path.cwd()}"))
    if held_before:
        raise EnvironmentFault(
            f"another run in {Path.cwd()} finished while this one was planning; run the same "
            "command again"
        )
