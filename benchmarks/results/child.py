"""What a command takes, measured from outside by the process that started it.

Torch is not imported here: a child process counts the memory that its parent held.
"""

import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes, of what systems call the most held


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    printed: str  # on both streams
    wall: float  # seconds
    cpu: float  # seconds of processors, of its own children as well
    megabytes: float  # the most that it, or one of its children, held

    @property
    def last_line(self) -> str:
        """The last line that it printed, where a command says what was wrong."""
        return next((line for line in self.printed.splitlines()[::-1] if line.strip()), "")


def python(words: Sequence[object], cwd: Path, limit: float | None = None) -> Ended:
    """Run Python with these words in a folder, and wait; it is killed after `limit` seconds."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(
            [sys.executable, *map(str, words)],
            cwd=cwd,
            stdout=printed,
            stderr=subprocess.STDOUT,
        )
        killer = threading.Timer(limit or threading.TIMEOUT_MAX, process.kill)
        killer.daemon = True
        killer.start()
        _, status, used = os.wait4(process.pid, 0)
        killer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - start
        printed.seek(0)
        text = printed.read().decode("utf-8", "replace")
    cpu, held = used.ru_utime + used.ru_stime, used.ru_maxrss * _UNIT / 1e6
    return Ended(process.returncode, text, wall, cpu, held)


def peak_bytes() -> int:
    """Highest resident memory of this process so far.

    Linux counts what the parent held when it started this process as well; the parent here has
    only what the child loads too.
    """
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT
