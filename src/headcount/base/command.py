"""What every script shares: a parser, exit codes, and an end when the workflow ends."""

import argparse
import ctypes
import errno
import gc
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from headcount.base.errors import EnvironmentFault, HeadcountError, UserError, lacks_memory

# What the machine refuses, and what the caller named wrongly; what to do about each.
_REFUSED = {
    errno.ENOSPC: "make room on the disk, and give the same command again",
    errno.EDQUOT: "make room within your quota, and give the same command again",
    errno.EFBIG: "raise the limit on the size of a file (ulimit -f)",
    errno.EROFS: "work in a folder that can be written",
    errno.EACCES: "ask its owner, or work in a folder of your own",
    errno.EPERM: "ask its owner, or work in a folder of your own",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
}
_MISNAMED = {
    errno.ENOENT: "correct the name, or make it first",
    errno.EEXIST: "expected a folder, or nothing yet; move what is there",
    errno.ENOTDIR: "a part of this path is a file; correct the name",
    errno.EISDIR: "expected a file; correct the name",
    errno.ELOOP: "this link leads back to itself; replace it",
    errno.ENAMETOOLONG: "take a shorter name",
}

_LESS = "lower the sizes of the model or of the batches, or take a machine with more memory"


def parser(description: str) -> argparse.ArgumentParser:
    """Parser of a script: its docstring as help, each default shown once, no abbreviations."""
    return argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )


def add_run_flags(parser: argparse.ArgumentParser) -> None:
    """Declare what every script that trains a model asks: text, seed, folders of run and states."""
    parser.add_argument("--bpe", required=True, type=Path, help="folder of the segmented pair")
    parser.add_argument("--seed", required=True, type=int, help="of all that is drawn at random")
    parser.add_argument("--out", required=True, type=Path, help="folder of the run")
    parser.add_argument("--state", required=True, type=Path, help="folder of unfinished states")
    parser.add_argument(
        "--save-seconds", type=float, default=30, help="time between two saved states"
    )


def add_masking_flags(parser: argparse.ArgumentParser) -> None:
    """Declare what every script asks that translates with heads of one model masked."""
    parser.add_argument("--pair", required=True, help="pair, such as multi30k.en-de")
    parser.add_argument("--model", required=True, type=Path, help="folder of the model")
    parser.add_argument("--bpe", required=True, type=Path, help="folder of the segmented pair")
    parser.add_argument("--text", required=True, type=Path, help="folder of the pair's text")
    parser.add_argument("--out", required=True, type=Path, help="CSV to write")


def run(main: Callable[[], None]) -> None:
    """Call `main` and leave with 0, or 2 (user), 3 (environment), 1 (bug, with traceback)."""
    try:
        _die_with_engine()
        gc.freeze()  # modules stay; to look through them for garbage took a hundredth of a search
        main()
        sys.stdout.flush()
    except HeadcountError as fault:
        _leave(str(fault), fault.exit_code)
    except (MemoryError, RuntimeError) as fault:
        if not lacks_memory(fault):
            raise
        line = str(fault).partition("\n")[0][:200] or type(fault).__name__
        _leave(f"out of memory ({line}); {_LESS}", EnvironmentFault.exit_code)
    except OSError as fault:
        if fault.errno not in _REFUSED | _MISNAMED:
            raise
        where = fault.filename or "standard output, or a file without a name"
        user = fault.errno in _MISNAMED
        _leave(
            f"{where}: {fault.strerror}; {(_REFUSED | _MISNAMED)[fault.errno]}",
            UserError.exit_code if user else EnvironmentFault.exit_code,
        )


def _leave(message: str, code: int) -> NoReturn:
    """Leave with a message and an exit code; with the code alone if the log is on a full disk."""
    try:
        print(f"error: {message}", file=sys.stderr, flush=True)
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)  # Python writes what is left as it ends
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
    sys.exit(code)


def die_with_parent() -> None:
    """On Linux: be killed when the parent process ends, however it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1 is PR_SET_PDEATHSIG


def has_engine() -> bool:
    """Whether Snakemake or DVC started this command, and records what it makes when it ends."""
    return bool(os.environ.get("HEADCOUNT_JOB"))


def _die_with_engine() -> None:
    """Under Snakemake or DVC: be killed with it, so that no job outlives its run.

    They put their process id into HEADCOUNT_JOB; another parent means the engine is gone. Raises
    EnvironmentFault then, but for a question about flags.
    """
    engine = os.environ.get("HEADCOUNT_JOB")
    if not engine or sys.platform != "linux" or {"-h", "--help"} & set(sys.argv):
        return
    die_with_parent()
    if engine != str(os.getppid()):
        raise EnvironmentFault(
            "HEADCOUNT_JOB: expected the id of the process that started this command, found "
            f"{engine[:20]!r}. Snakemake and DVC set it for their jobs: theirs has ended, or the "
            "variable is left in this shell; then: unset HEADCOUNT_JOB"
        )
