"""Runs as settings: which heads leave a pruned model, and the name of a run of any kind.

A run is a mapping of these keys or its short name (`short_names.py`). `label` is the name that
paths carry; `run_file.py` has what stands beside the model of every run.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from headcount.base.addresses import SCOPES
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.section import Section
from headcount.base.settings.short_names import (
    PRUNED_WORDS,
    check_decimals,
    pruned_name,
    read_pruned_name,
    read_training_name,
)
from headcount.base.settings.training_runs import BASELINE, RunSettings, too_many

_MOST_LAMBDA = 10**6

NONE = "none"
RANDOM_WEIGHTS = "random weights"
"""What tables and figures call the start of a run that is `from: none`."""


def _read_start(given: Any) -> Any:
    """The mapping for the short name of a training run; `none` as it is."""
    if not isinstance(given, str) or given == NONE:
        return given
    try:
        return read_training_name(given)
    except ValueError as fault:
        raise ValueError(f"{fault}; random weights are written {NONE}") from None


_Start = Annotated[
    RunSettings | Literal["none"],
    BeforeValidator(_read_start, json_schema_input_type=str | RunSettings),
]


class PrunedSettings(Section):
    """A pruned run: the heads that a model loses, and how those that stay were chosen."""

    method: Literal["gates", "scratch", "importance", "random", "subset"]
    """Train with a gate on every head, a trained model further or one from random weights (`from`),
    and remove the heads whose gates close; or, to compare with that: train the heads that the gates
    kept from a random start; keep as many by importance, or as many at random, both fine-tuned for
    as long; or keep exactly as many as `heads` says, learning which (`subset`)."""

    scope: Literal["enc_self", "all"] = "all"
    """Which heads may go: those of encoder self-attention (a trained decoder is then frozen), or
    all."""

    lambda_: float = Field(alias="lambda", ge=0, lt=_MOST_LAMBDA)
    """λ of the gates, the price of one head in nats per target token; 0: the control,
    whose heads cost nothing. Left out for `subset`, which has no price."""

    heads: int | None = Field(None, ge=1)
    """K, how many heads of the scope stay, for `subset` alone (`subset-all-k8`)."""

    init_from: _Start = Field(BASELINE, alias="from")
    """The training run whose model is pruned, one of `runs`; or `none`: gates from random weights,
    trained by `train` with nothing frozen, for `train.updates` + `gates.updates`."""

    @model_validator(mode="before")
    @classmethod
    def _read_short_name(cls, given: Any) -> Any:
        found = read_pruned_name(given) if isinstance(given, str) else given
        subset = isinstance(found, dict) and found.get("method") == "subset"
        return {"lambda": 0.0, **found} if subset else found

    @model_validator(mode="after")
    def _check_size(self) -> "PrunedSettings":
        check_decimals("lambda", self.lambda_, 9)
        subset = self.method == "subset"
        if subset != (self.heads is not None) or (subset and self.lambda_):
            expected = "heads, how many stay, and no lambda" if subset else "lambda and no heads"
            raise ValueError(f"method {self.method}: expected {expected}")
        return self

    @model_validator(mode="after")
    def _check_start(self) -> "PrunedSettings":
        if not self.from_none and self.init_from.attention_heads is not None:
            raise ValueError(
                f"from: expected a training run with as many heads as `model`, whose pruned models "
                f"can be compared, found {self.start}; name one without attention_heads"
            )
        if self.from_none and self.method in ("importance", "random", "subset"):
            raise ValueError(
                f"method {self.method} fine-tunes what is left of a trained model, found from: "
                f"{NONE}; name a training run, or take method gates or scratch"
            )
        return self

    @property
    def from_none(self) -> bool:
        """Whether the gates begin with random weights, in place of those of a training run."""
        return self.init_from == NONE

    @property
    def start(self) -> str:
        """What tables call the start: the name of a training run, or random weights."""
        return RANDOM_WEIGHTS if self.from_none else label(self.init_from)

    @property
    def word(self) -> str:
        """What names and tables call the method: gates, scratch, ranked, drawn or subset."""
        return PRUNED_WORDS[self.method]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of attention that may lose heads; those of any other kind all stay."""
        return SCOPES[self.scope]

    @property
    def gates_run(self) -> "PrunedSettings":
        """The gates run that says how many heads stay, for `scratch` which; a subset itself."""
        return self if self.method == "subset" else self.model_copy(update={"method": "gates"})

    @property
    def control(self) -> "PrunedSettings":
        """What says how much BLEU was lost: the same training without a price on heads.

        The run with λ = 0, which tells what as many updates with gates do to the same weights.
        """
        return self.model_copy(update={"method": "gates", "lambda_": 0.0, "heads": None})

    def counted(self, model: ModelSettings) -> "PrunedSettings":
        """This run on such a model, shares as numbers. Raises ValueError for too many `heads`."""
        inside = sum(sum(model.grid.counts[kind]) for kind in self.kinds)
        if self.heads is not None and self.heads > inside:
            nearest = label(self.model_copy(update={"heads": inside}))
            expected = f"1 to {inside} heads, as many as the scope has"
            raise too_many(label(self), expected, self.heads, nearest)
        if self.from_none:
            return self
        return self.model_copy(update={"init_from": self.init_from.counted(model)})


Run = RunSettings | PrunedSettings


def label(run: Run) -> str:
    """The name of a run in paths and tables: suffixes in a fixed order, numbers in one spelling."""
    if isinstance(run, PrunedSettings):
        start = NONE if run.from_none else run.start
        kept = run.heads or "<K>"  # a message may name the form alone
        size = kept if run.method == "subset" else run.lambda_
        return pruned_name(run.word, run.scope, size, "" if run.init_from == BASELINE else start)
    return run.label


def labels(runs: list[Run]) -> list[str]:
    """The name of each run."""
    return [label(run) for run in runs]
