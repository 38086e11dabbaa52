"""Lists of runs in an experiment: entries that stand for several runs, and what they all need."""

from collections.abc import Sequence
from itertools import product
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, ValidationInfo

from headcount.base.settings.runs import PrunedSettings, Run, label, labels
from headcount.base.settings.section import Section, each_once
from headcount.base.settings.training_runs import BASELINE, RunSettings


def swept(entry: Any) -> list[Any]:
    """The runs that an entry stands for: one, or those that a mapping's lists make together.

    `{method: gates, lambda: [0, 0.1]}` is two runs. Of several lists the last goes fastest.
    """
    if not isinstance(entry, dict):
        return [entry]
    choices = [value if isinstance(value, list) else [value] for value in entry.values()]
    for key, values in zip(entry, choices, strict=True):
        if not values:
            raise ValueError(f"{key}: expected a value, or a list of at least one, found []")
    return [dict(zip(entry, chosen, strict=True)) for chosen in product(*choices)]


def counted(runs: Sequence[Run], info: ValidationInfo) -> list[Run]:
    """Each in one spelling, once the model is known that stands above in the file."""
    model = info.data.get("model")
    return list(runs) if model is None else [run.counted(model) for run in runs]


def _flat(entries: list[list[Run]]) -> list[Run]:
    """The runs of all entries, each once."""
    runs = [run for entry in entries for run in entry]
    try:
        each_once(labels(runs))
    except ValueError as fault:
        raise ValueError(
            f"{fault}; a share counts as the number of heads that it makes, and dropout and "
            "attention_heads as the model's own where they are that"
        ) from None
    return runs


def _list_of(kind: type[Section]) -> Any:
    """Type of a list whose entries are mappings or short names; it is written as labels."""
    several = BeforeValidator(swept, json_schema_input_type=str | kind)
    entry = Annotated[list[kind], several, AfterValidator(counted)]
    return Annotated[list[entry], AfterValidator(_flat), PlainSerializer(labels)]


def _check_trained(runs: list[RunSettings]) -> list[RunSettings]:
    """Raise ValueError if a run differs from a baseline that is not trained."""
    for run in runs:
        if run.attention_heads is not None and BASELINE not in runs:
            raise ValueError(
                f"{label(run)!r} is compared with {label(BASELINE)!r}, which is not among `runs`; "
                "add it there"
            )
    return runs


def _check_pruned(pruned: list[PrunedSettings], info: ValidationInfo) -> list[PrunedSettings]:
    """Raise ValueError if a model to start from, or a run to compare with, is not made."""
    if not {"model", "runs"} <= set(info.data):
        return pruned
    runs = info.data["runs"]
    for run in pruned:
        name = repr(label(run))
        if not run.from_none and run.init_from not in runs:
            raise ValueError(
                f"{name} starts from the run {label(run.init_from)!r}, which is not among `runs` "
                f"({', '.join(labels(runs))}); add it there"
            )
        if run.from_none and BASELINE not in runs:
            raise ValueError(
                f"{name} needs the run {label(BASELINE)!r}, which begins with the same weights and "
                "is not among `runs`; add it there"
            )
        if run.gates_run not in pruned:
            raise ValueError(
                f"{name} needs the heads that {label(run.gates_run)!r} keeps, which is not among "
                "`pruned`; add it there"
            )
        if run.control not in pruned:
            raise ValueError(
                f"{name} needs its control {label(run.control)!r}, trained for as many updates "
                "with λ = 0, which is not among `pruned`; add it there"
            )
    return pruned


Runs = _list_of(RunSettings)
TrainingRuns = Annotated[Runs, AfterValidator(_check_trained)]
PrunedRuns = Annotated[_list_of(PrunedSettings), AfterValidator(_check_pruned)]
