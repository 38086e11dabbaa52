"""Command line of a run, messages of faults, and the exit codes of failed jobs."""

import io
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

from snakemake.logging import logger

from headcount.base.errors import EnvironmentFault, HeadcountError, UserError

DEFAULT = "quickstart"


def experiment_name(config: Mapping[str, Any]) -> str:
    """Return the experiment of `--config`, or the default. Raise UserError for other keys."""
    name = config.get("experiment", DEFAULT)
    unknown = [key for key in config if key != "experiment"]
    if unknown:
        raise UserError(
            f"--config or --configfile: unknown key {unknown[0]}. Give only experiment=NAME; "
            f"settings are in config/NAME.yaml, here config/{name}.yaml"
        )
    return "" if name is None else str(name)  # None: Snakemake's reading of `experiment=`


def makes_nothing() -> bool:
    """Return whether this command only plans: a dry run or an estimate."""
    program, *flags = sys.argv
    dry = any(re.fullmatch(r"-[Fkpq]*n[Fkpq]*|--dry-?run", flag) for flag in flags)
    return dry or program.endswith("estimate.py")


def submits() -> bool:
    """Return whether the executor, of the command line or its profile, is a cluster."""
    from snakemake.cli import parse_args

    with redirect_stderr(io.StringIO()):  # Snakemake has named the profile already
        _, args = parse_args(sys.argv[1:])
    return args.executor not in (None, "local")  # `--jobs` may stand beside `--cores` anywhere


def trusts_files() -> bool:
    """Return whether a person accepts files without a record, by `--touch`."""
    return bool({"--touch", "-t"} & set(sys.argv))


_STATUS = re.compile(r"returned non-zero exit status (\d+)\.$", re.MULTILINE)
_KILLED = re.compile(r"died with <Signals\.SIGKILL: 9>\.$", re.MULTILINE)
_SHOWN = re.compile(r"^Logfile ([^\n]+):\n=+\n(.*?)^=+$", re.MULTILINE | re.DOTALL)
_MESSAGE = re.compile(r"^(\S+: )?error: .*", re.MULTILINE | re.DOTALL)
_OUT_OF_MEMORY = (
    "error: a job was killed from outside (signal 9), as the kernel does where memory runs out; "
    "lower its section's batch_tokens, or --cores, or take a machine with more memory. The same "
    "command resumes from here"
)
_EXPLAINED = {UserError.exit_code, EnvironmentFault.exit_code}
_LISTED = 9


def listed(faults: Sequence[str]) -> str:
    """Return the first faults, a line each, and the number of others."""
    more = [f"and {len(faults) - _LISTED} more"] if len(faults) > _LISTED else []
    return "\n  ".join([*faults[:_LISTED], *more])


@contextmanager
def leaving() -> Iterator[None]:
    """Print a fault and end at once. Snakemake would replace the message and the exit code."""
    try:
        yield
    except HeadcountError as fault:
        print(f"error: {fault}", file=sys.stderr, flush=True)
        os._exit(fault.exit_code)


def leave_as_job(logs: Sequence[str]) -> None:
    """Leave with the exit code of failed jobs in Snakemake's logs, unless one met a bug."""
    text = "".join(Path(log).read_text(encoding="utf-8", errors="replace") for log in logs)
    codes = {int(code) for code in _STATUS.findall(text)}
    if _KILLED.search(text):
        codes.add(EnvironmentFault.exit_code)
        logger.error(_OUT_OF_MEMORY)
    if not codes or codes - _EXPLAINED:
        return
    for log, written in _SHOWN.findall(text):
        if message := _MESSAGE.search(written):
            logger.error(f"{message[0].rstrip()}\n({log})")
    sys.exit(min(codes))
