"""Pruned runs as settings: which heads a pruned model loses, and how they were chosen."""

from typing import Any, Literal

from pydantic import Field, model_validator

from headcount.base.addresses import SCOPES
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.section import Section
from headcount.base.settings.short_names import NONE, PRUNED_WORDS, label, read_pruned_name
from headcount.base.settings.training_runs import BASELINE, RunSettings

RANDOM_WEIGHTS = "random weights"
"""What tables and figures call the start of a run that is `from: none`."""



class PrunedSettings(Section):
    """A pruned run: the heads that a model loses, and how the others were chosen."""

    method: Literal["gates", "scratch", "importance", "random", "subset"]
    """Train with a gate on every head, and remove the heads whose gates close; or, to compare with
    that: train the heads that the gates left from a random start; keep as many by importance, or as
    many at random, both fine-tuned for as long; or keep exactly `heads`, learning which (`subset`).
    """

    scope: Literal["enc_self", "all"] = "all"
    """Which heads may be removed: encoder self-attention (a trained decoder is then frozen), or
    all."""

    lambda_: float = Field(0.0, alias="lambda", ge=0, lt=1e6)
    """λ of the gates, the penalty of one head in nats per target token; 0: the control, whose heads
    have no penalty."""

    heads: int | None = Field(None, ge=1)
    """K, how many heads of the scope stay, for `subset` in place of λ (`subset-all-k8`)."""

    init_from: RunSettings | Literal["none"] = Field(BASELINE, alias="from")
    """The training run whose model is pruned, one of `runs`; or `none`: gates from random weights,
    trained by `train` with nothing frozen, for `train.updates` + `gates.updates`."""

    @model_validator(mode="before")
    @classmethod
    def _read_short_name(cls, given: Any) -> Any:
        return read_pruned_name(given) if isinstance(given, str) else given

    @model_validator(mode="after")
    def _check(self) -> "PrunedSettings":
        subset, method = self.method == "subset", self.method
        if subset != (self.heads is not None) or subset and self.lambda_:
            raise ValueError(f"method {method}: expected {'heads' if subset else 'lambda'} alone")
        if not subset and "lambda_" not in self.model_fields_set:
            raise ValueError(f"method {method}: expected lambda")
        if not self.from_none and self.init_from.attention_heads is not None:
            raise ValueError("from: expected a training run with as many heads as `model`")
        if self.from_none and method not in ("gates", "scratch"):
            raise ValueError(f"method {method} needs a trained model, found from: {NONE}")
        return self

    @property
    def from_none(self) -> bool:
        """Whether the gates begin with random weights, in place of a training run's."""
        return self.init_from == NONE

    @property
    def start(self) -> str:
        """Name of the start in tables: a training run, or random weights."""
        return RANDOM_WEIGHTS if self.from_none else label(self.init_from)

    @property
    def word(self) -> str:
        """Name of the method in names and tables: gates, scratch, ranked, drawn or subset."""
        return PRUNED_WORDS[self.method]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Attention types that may lose heads."""
        return SCOPES[self.scope]

    @property
    def gates_run(self) -> "PrunedSettings":
        """The gates run that decides how many heads stay, for `scratch` which; a subset itself."""
        return self if self.method == "subset" else self.model_copy(update={"method": "gates"})

    @property
    def control(self) -> "PrunedSettings":
        """The gates run with λ = 0, which shows the effect of as many updates with gates."""
        return self.model_copy(update={"method": "gates", "lambda_": 0.0, "heads": None})

    def counted(self, model: ModelSettings) -> "PrunedSettings":
        """Return the run with numbers in place of shares. Raises ValueError for too many heads."""
        most = sum(sum(model.grid.counts[kind]) for kind in self.kinds)
        if (self.heads or 0) > most:
            raise ValueError(f"run {label(self)!r}: expected at most {most} heads of the scope")
        start = self.init_from if self.from_none else self.init_from.counted(model)
        return self.model_copy(update={"init_from": start})


Run = RunSettings | PrunedSettings


def labels(runs: list[Run]) -> list[str]:
    """Return the name of each run."""
    return [label(run) for run in runs]
