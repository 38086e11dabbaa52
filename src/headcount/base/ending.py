"""Ends of commands: exit codes, messages for faults of the machine, and an end with the engine."""

import ctypes
import errno
import os
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from headcount.base import fingerprint
from headcount.base.errors import EnvironmentFault, HeadcountError, UserError, lacks_memory

ENGINE = "HEADCOUNT_JOB"
"""Variable with the process id of the Snakemake or DVC that starts a job."""

# Errors of the machine, with advice, and of names that the user can correct.
_REFUSED = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "make room, and give the same command again"),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), "work in a folder of your own"),
    **{errno.EFBIG: "raise the limit on the size of a file", errno.EMFILE: "raise ulimit -n"},
}
_MISNAMED = {errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ELOOP}
_MISNAMED |= {errno.ENAMETOOLONG}


def run(main: Callable[[], None]) -> None:
    """Call `main` and leave with 0, or 2 (user), 3 (environment), 1 (bug, with traceback).

    At Ctrl-C leave with 130 and without a message. A training that it stops names the saved state.
    """
    try:
        fingerprint.require_own_package(Path(sys.argv[0]).resolve().parent.parent)
        if os.environ.get(ENGINE) == str(os.getppid()):  # not so where srun starts the job
            die_with_parent()
        main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except HeadcountError as fault:
        _leave(str(fault), fault.exit_code)
    except (MemoryError, RuntimeError) as fault:
        if not lacks_memory(fault):
            raise
        line = str(fault).partition("\n")[0][:200] or type(fault).__name__
        less = "lower the sizes of the model or of the batches, or take a machine with more memory"
        _leave(f"out of memory ({line}); {less}", EnvironmentFault.exit_code)
    except OSError as fault:
        if isinstance(fault, BrokenPipeError) and _stdout_is_cut():
            _write_nowhere()
            sys.exit(128 + signal.SIGPIPE)  # as programs end before `head`
        if fault.errno not in _MISNAMED | _REFUSED.keys():
            raise
        where = fault.filename or "standard output, or a file without a name"
        kind = UserError if fault.errno in _MISNAMED else EnvironmentFault
        advice = _REFUSED.get(fault.errno, "correct the name")
        _leave(f"{where}: {fault.strerror}; {advice}", kind.exit_code)


def _leave(message: str, code: int) -> NoReturn:
    """Leave with a message and an exit code, or with the code alone if the log's disk is full."""
    try:
        print(f"error: {message}", file=sys.stderr, flush=True)
        sys.stdout.flush()
    except OSError:
        _write_nowhere()
    sys.exit(code)


def _stdout_is_cut() -> bool:
    """Return True if standard output is a pipe whose reader has ended."""
    poll = select.poll()
    poll.register(1, 0)  # no event but errors
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _write_nowhere() -> None:
    """Discard what Python still writes as it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def die_with_parent() -> None:
    """Have Linux kill this process when its parent ends, however it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1 is PR_SET_PDEATHSIG


def has_engine() -> bool:
    """Return True if Snakemake or DVC started this command, and records its outputs at its end."""
    return bool(os.environ.get(ENGINE))
