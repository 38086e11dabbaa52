"""One run at a time in a folder, by a lock that the kernel drops with the process."""

import fcntl
import os
import sys
from pathlib import Path

from headcount.base.errors import EnvironmentFault

LOCK = Path(".snakemake/headcount.lock")
_held = []  # open files: closing one would drop its lock


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
        print(
            f"error: process {holder} is running this workflow in {Path.cwd()}; "
            "wait until it ends, or stop it",
            file=sys.stderr,
            flush=True,
        )
        os._exit(EnvironmentFault.exit_code)  # Snakemake would turn sys.exit into its own code
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    _held.append(file)
