"""`run.json`, the settings of a run beside its model."""

from pathlib import Path

from headcount.base.files import read_json, write_json
from headcount.base.settings.faults import checked, keyed
from headcount.base.settings.runs import PrunedSettings, Run, label
from headcount.base.settings.training_runs import RunSettings

RUN_FILE = "run.json"


def write_run(folder: Path, run: Run) -> None:
    """Write `run.json`: under `run` the label, then every key of the run's settings."""
    settings = run.model_dump(by_alias=True, exclude_none=True)
    write_json(folder / RUN_FILE, {"run": label(run), **settings})


def read_run(path: Path) -> Run:
    """Return the settings in a run.json. Raises UserError if they are not those of a run."""
    given = read_json(path)
    given.pop("run", None)
    kind = PrunedSettings if "lambda" in given else RunSettings
    # Older files have keys of variants that are gone. Switched off, they mean nothing.
    known = {field.alias or name for name, field in kind.model_fields.items()}
    given = {key: value for key, value in given.items() if key in known or value}
    return checked(kind, given, lambda key: f"{path}: {keyed(key)}")
