"""Files that one process holds at a time; the kernel drops the lock with its holder."""

import fcntl
import os
from pathlib import Path
from typing import TextIO

from headcount.base.errors import EnvironmentFault
from headcount.base.files import naming


def hold(path: Path, doing: str) -> TextIO:
    """The open file whose lock is held until it is closed or this process ends, however it ends.

    `doing` says what a holder does, as in 'process 7 is training in x'. Raises EnvironmentFault
    naming the holder if another process, or another call in this one, has the lock.
    """
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+")
    # Not filelock: it names no holder, and where flock fails its lock outlives a killed process.
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as fault:
        file.seek(0)
        holder = file.read().strip() or "unknown"
        file.close()
        raise EnvironmentFault(
            f"process {holder} is {doing}; wait until it ends, or stop it"
        ) from fault
    with naming(path):
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
    return file
