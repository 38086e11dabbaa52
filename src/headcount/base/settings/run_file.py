"""`run.json`, the settings of a run beside its model."""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from headcount.base.errors import UserError
from headcount.base.files import read_json, write_json
from headcount.base.settings.runs import PrunedSettings, Run, label
from headcount.base.settings.section import Section
from headcount.base.settings.training_runs import RunSettings

RUN_FILE = "run.json"


def write_run(folder: Path, run: Run) -> None:
    """Write `run.json`: under `run` the label, then every key of the run's settings."""
    settings = run.model_dump(by_alias=True, exclude_none=True)
    write_json(folder / RUN_FILE, {"run": label(run), **settings})


def read_run(path: Path) -> Run:
    """The settings in a run.json. Raises UserError if they are no run's, or have another label."""
    found = read_json(path)
    written = found.pop("run", "")
    kind = PrunedSettings if "lambda" in found else RunSettings
    try:
        run = kind.model_validate(_without_old_keys(found, kind))
    except ValidationError:
        raise UserError(f"{path}: expected the settings of a run; make the run again") from None
    if label(run) != written:
        raise UserError(
            f"{path}: expected the run {label(run)}, as its settings say, found {written!r}; make "
            "the run again"
        )
    return run


def _without_old_keys(found: dict[str, Any], kind: type[Section]) -> dict[str, Any]:
    """A run's settings without keys that this version has not and that were off: they say nothing.

    So that runs stay readable of a version that had more ways to choose heads.
    """
    known = {field.alias or name for name, field in kind.model_fields.items()}
    said = {key: value for key, value in found.items() if key in known or value is not False}
    if isinstance(start := said.get("from"), dict):
        said["from"] = _without_old_keys(start, RunSettings)
    return said
