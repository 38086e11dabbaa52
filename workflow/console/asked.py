"""Command line of a run: the experiment, and whether and where jobs will run."""

import io
import re
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr
from typing import Any

from headcount.base.errors import UserError

DEFAULT = "quickstart"


def experiment_name(config: Mapping[str, Any]) -> str:
    """Return the experiment that `--config` names, or the default.

    Raises UserError for any other key, also from `--configfile`.
    """
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
    """Return whether the executor, of the command line or its profile, is a cluster.

    `--jobs` does not tell: somebody may give it beside `--cores` on one machine, too.
    """
    from snakemake.cli import parse_args

    with redirect_stderr(io.StringIO()):  # Snakemake has named the profile already
        _, args = parse_args(sys.argv[1:])
    return args.executor not in (None, "local")


def trusts_files() -> bool:
    """Return whether a person accepts files without a record, by `--touch`."""
    return bool({"--touch", "-t"} & set(sys.argv))
