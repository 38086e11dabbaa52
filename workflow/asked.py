"""What the command line asks for: an experiment by its name, and nothing else."""

import io
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from headcount.base.errors import UserError
from headcount.base.settings.experiment import Experiment, experiment_names
from headcount.base.settings.names import closest
from headcount.base.settings.schema import Schema

DEFAULT = "quickstart"
_KEY = "experiment"


def experiment_name(config: Mapping[str, Any], files: Sequence[Path], folder: Path) -> str:
    """The experiment's name, or that of the default.

    `config` is what `--config` and `--configfile` gave, `files` are the latter's, and experiments
    lie in `folder`. Raises UserError for any other key, saying where it belongs.
    """
    asked = config.get(_KEY, DEFAULT)
    name = "" if asked is None else str(asked)  # None: Snakemake's reading of `experiment=`
    unknown = [key for key in config if key != _KEY]
    if unknown and files:
        raise UserError(_of_file(files[0], folder))
    if unknown:
        raise UserError(_of_key(unknown[0], folder / f"{name}.yaml"))
    return name


def makes_nothing() -> bool:
    """Whether this command only plans: a dry run or an estimate."""
    program, *flags = sys.argv
    dry = any(re.fullmatch(r"-[Fkpq]*n[Fkpq]*|--dry-?run", flag) for flag in flags)
    return dry or Path(program).name == "estimate.py"


def submits() -> bool:
    """Whether this command submits its jobs to a cluster: so its executor says, or its profile's.

    Not `--jobs`, which somebody may give beside `--cores` on one machine, too.
    """
    from snakemake.cli import parse_args

    with redirect_stderr(io.StringIO()):  # Snakemake has told already which profile it read
        _, args = parse_args(sys.argv[1:])
    return args.executor not in (None, "local")


def _of_file(file: Path, folder: Path) -> str:
    """What to do with a file of settings that was given by its path."""
    name = file.stem
    first = "" if name in experiment_names(folder) else f"put the file into {folder}/, then "
    return (
        f"--configfile {file}: an experiment is given by its name; {first}give --config "
        f"{_KEY}={name} instead"
    )


def _of_key(key: str, file: Path) -> str:
    """Where a key belongs, if it is one of the settings, or which one it may have been."""
    schema = Schema(Experiment)
    sections = schema.keys(())
    settings = [*sections, *(f"{top}.{low}" for top in sections for low in schema.keys((top,)))]
    places = [place for place in settings if key in (place, place.partition(".")[2])]
    if places:
        shown = " or ".join(f"`{place.replace('.', ': ')}:`" for place in places)
        return f"--config {key}: settings live in {file}, this one at {shown}; change it there"
    near = closest(key, [_KEY, *settings])
    hint = f"; nearest: {near}" if near else ""
    return f"--config {key}: unknown key{hint}. Give only {_KEY}=NAME; settings live in {file}"
