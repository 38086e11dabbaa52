"""How the workflow ends at a fault: with its own words and exit code, or those of its job."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from headcount.base.errors import EnvironmentFault, HeadcountError, UserError

_STATUS = re.compile(r"returned non-zero exit status (\d+)\.$", re.MULTILINE)
_KILLED = re.compile(r"died with <Signals\.SIGKILL: 9>\.$", re.MULTILINE)
_SHOWN = re.compile(r"^Logfile ([^\n]+):\n=+\n(.*?)^=+$", re.MULTILINE | re.DOTALL)
_MESSAGE = re.compile(r"^(\S+: )?error: .*", re.MULTILINE | re.DOTALL)
_OF_KILLED = (
    "error: a job was killed from outside (signal 9), as the kernel does where memory runs out; "
    "lower its section's batch_tokens, or --cores, or take a machine with more memory. The same "
    "command goes on from here"
)
_TOLD = {UserError.exit_code, EnvironmentFault.exit_code}
_LISTED = 9


def listed(faults: Sequence[str]) -> str:
    """The first faults, a line each, and how many more there are."""
    more = [f"and {len(faults) - _LISTED} more"] if len(faults) > _LISTED else []
    return "\n  ".join([*faults[:_LISTED], *more])


def leave(fault: HeadcountError) -> NoReturn:
    """Print the fault and end at once; Snakemake would turn it, and sys.exit, into its own code."""
    print(f"error: {fault}", file=sys.stderr, flush=True)
    os._exit(fault.exit_code)


def leave_as_job(logs: Sequence[str]) -> None:
    """Leave with the exit code of the jobs that failed, unless one of them met a bug.

    `logs` are Snakemake's own; they hold the codes and what those jobs wrote. Snakemake's code is
    1 for every fault, and other jobs may have printed much since.
    """
    text = "".join(Path(log).read_text(encoding="utf-8", errors="replace") for log in logs)
    codes = {int(code) for code in _STATUS.findall(text)}
    if _KILLED.search(text):
        codes.add(EnvironmentFault.exit_code)
        print(_OF_KILLED, file=sys.stderr)
    if not codes or codes - _TOLD:
        return
    for log, written in _SHOWN.findall(text):
        if message := _MESSAGE.search(written):
            print(f"{message[0].rstrip()}\n({log})", file=sys.stderr)
    sys.exit(min(codes))
