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

from headcount.base.errors import EnvironmentFault, HeadcountError, UserError

# What the machine refuses, and what the caller named wrongly.
_REFUSED = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EMFILE}
_MISNAMED = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR}


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
    _die_with_engine()
    gc.freeze()  # modules stay; to look through them for garbage took a hundredth of a search
    try:
        main()
    except HeadcountError as fault:
        print(f"error: {fault}", file=sys.stderr)
        sys.exit(fault.exit_code)
    except MemoryError:
        print("error: out of memory; lower batch_tokens", file=sys.stderr)
        sys.exit(EnvironmentFault.exit_code)
    except OSError as fault:
        if fault.errno not in _REFUSED | _MISNAMED:
            raise
        print(f"error: {fault.filename or Path.cwd()}: {fault.strerror}", file=sys.stderr)
        user = fault.errno in _MISNAMED
        sys.exit(UserError.exit_code if user else EnvironmentFault.exit_code)


def die_with_parent() -> None:
    """On Linux: be killed when the parent process ends, however it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1 is PR_SET_PDEATHSIG


def _die_with_engine() -> None:
    """Under Snakemake or DVC: be killed with it, so that no job outlives its run.

    They put their process id into HEADCOUNT_JOB; another parent means the engine is gone.
    """
    engine = os.environ.get("HEADCOUNT_JOB")
    if engine and sys.platform == "linux":
        die_with_parent()
        if os.getppid() != int(engine):
            sys.exit(EnvironmentFault.exit_code)
