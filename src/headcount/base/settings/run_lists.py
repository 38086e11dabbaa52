"""Lists of runs in an experiment: entries that stand for several runs, and the runs they need."""

from collections.abc import Sequence
from itertools import product
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, ValidationInfo

from headcount.base.settings.runs import PrunedSettings, Run, label, labels
from headcount.base.settings.section import Section, each_once
from headcount.base.settings.training_runs import BASELINE, RunSettings


def _swept(entry: Any) -> list[Any]:
    """Return the runs of an entry: one, or all combinations of the lists in a mapping."""
    if not isinstance(entry, dict):
        return [entry]
    choices = [value if isinstance(value, list) else [value] for value in entry.values()]
    if [] in choices:
        raise ValueError("expected a value, or a list of at least one, found []")
    return [dict(zip(entry, chosen, strict=True)) for chosen in product(*choices)]


def counted(runs: Sequence[Run], info: ValidationInfo) -> list[Run]:
    """Return runs in one spelling, once the model is known that stands above in the file."""
    model = info.data.get("model")
    return list(runs) if model is None else [run.counted(model) for run in runs]


def _flat(entries: list[list[Run]]) -> list[Run]:
    runs = [run for entry in entries for run in entry]
    each_once(labels(runs))
    return runs


def _list_of(kind: type[Section]) -> Any:
    """Return the type of a list whose entries are mappings or short names."""
    several = BeforeValidator(_swept, json_schema_input_type=str | kind)
    entry = Annotated[list[kind], several, AfterValidator(counted)]
    return Annotated[list[entry], AfterValidator(_flat), PlainSerializer(labels)]


def _require(run: Run, other: Run, key: str, runs: Sequence[Run]) -> None:
    if other not in runs:
        raise ValueError(f"{label(run)!r} needs the run {label(other)!r}; add it to `{key}`")


def _check_trained(runs: list[RunSettings]) -> list[RunSettings]:
    for run in runs:
        if run.attention_heads is not None:
            _require(run, BASELINE, "runs", runs)
    return runs


def _check_pruned(pruned: list[PrunedSettings], info: ValidationInfo) -> list[PrunedSettings]:
    for run in pruned:
        if {"model", "runs"} <= set(info.data):
            start = BASELINE if run.from_none else run.init_from
            _require(run, start, "runs", info.data["runs"])
            _require(run, run.gates_run, "pruned", pruned)
            _require(run, run.control, "pruned", pruned)
    return pruned


Runs = _list_of(RunSettings)
TrainingRuns = Annotated[Runs, AfterValidator(_check_trained)]
PrunedRuns = Annotated[_list_of(PrunedSettings), AfterValidator(_check_pruned)]
