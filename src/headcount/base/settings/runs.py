"""Runs as settings: which heads a training masks, and how a trained model is pruned.

A run is a mapping of these keys or its short name (`short_names.py`). `label` is the name that
paths carry; `run_file.py` has what stands beside the model of every run.
"""

from fractions import Fraction
from math import floor
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from headcount.base.addresses import SCOPES
from headcount.base.settings.model import MOST_IN_A_ROW, ModelSettings
from headcount.base.settings.section import Section
from headcount.base.settings.short_names import (
    PRUNED_WORDS,
    check_decimals,
    check_share,
    pruned_name,
    read_pruned_name,
    read_training_name,
    training_name,
)

_MOST_LAMBDA = 10**6
_KEYS = {
    "baseline": {"attention_heads"},
    "random": {"heads", "share"},
    "importance": {"heads", "share", "probability", "signed", "unit", "decay", "spare", "held"},
}


class RunSettings(Section):
    """A training run: which heads are masked in each of its updates, or how many there are."""

    method: Literal["baseline", "random", "importance"]
    """No head; N heads, drawn anew from the whole model; or the N most important ones for the very
    batch."""

    heads: int | None = Field(None, ge=0)
    """N, how many heads are masked."""

    share: str | None = None
    """In place of N, a share of the model's heads, as in `12.5%`: the nearest number, at least 1
    unless the share is 0."""

    attention_heads: int | None = Field(None, ge=1, le=MOST_IN_A_ROW)
    """Heads of every attention layer, in place of `model.heads` (`baseline-h1`): a divisor of
    d_model. The width stays, so fewer heads are wider ones, and weights are as many. For
    `baseline`, which must be among the runs without it, too; as many as the model has are that."""

    probability: float = Field(1.0, gt=0, le=1)
    """Share of the updates that mask heads, drawn at random (`-p0.5`); the others have all heads
    on and no first pass. This key and those below are for `importance`, and depart from the
    paper."""

    signed: bool = False
    """Rank by −∂L/∂ξ, to first order what masking adds to the loss, and mask only heads where
    that is above 0, so that there may be fewer than N (`-signed`)."""

    unit: Literal["sentence", "batch", "position", "token"] = "sentence"
    """What the absolute value of importance is taken of: the derivative of a sentence's loss, of a
    batch's (`-batch`), each query position's share (`-position`), or each target token's loss
    (`-token`, slow: a backward pass per target position); as in `importance.abs`."""

    decay: float = Field(0.0, ge=0, lt=1)
    """Weight of the past in a moving average of importance over updates (`-ema0.9`); 0: this update
    alone."""

    spare: Literal["enc_self", "dec_self", "dec_enc"] | None = None
    """A kind of attention whose heads are never masked (`-spare_dec_self`); a share is of all."""

    held: int = Field(0, ge=0, le=999_999)
    """In so many first updates, N heads drawn by the run seed are masked in place of the most
    important (`-held60`): an experiment on whether heads that the rest has learnt to do without
    stay masked afterwards. First passes are made in these updates too."""

    @model_validator(mode="before")
    @classmethod
    def _read_short_name(cls, given: Any) -> Any:
        return read_training_name(given) if isinstance(given, str) else given

    @model_validator(mode="after")
    def _check_keys(self) -> "RunSettings":
        said = self.model_dump(exclude_defaults=True, exclude={"method"})
        if extra := [key for key in said if key not in _KEYS[self.method]]:
            takers = [method for method, keys in _KEYS.items() if keys.issuperset(extra)]
            other = f", or take method {' or '.join(takers)}" if takers else ""
            raise ValueError(
                f"method {self.method} takes no {' and no '.join(extra)}; remove it{other}"
            )
        if self.method != "baseline" and (self.heads is None) == (self.share is None):
            raise ValueError(f"method {self.method}: expected heads or share, one of the two")
        if self.signed and self.unit != "sentence":
            raise ValueError(f"signed takes no absolute value, so no unit; remove {self.unit}")
        for key in ("probability", "decay"):
            check_decimals(key, getattr(self, key), 4)
        if self.share is not None:
            check_share(self.share)
        return self

    @property
    def derivative_of(self) -> Literal["sentence", "batch", "position", "token", "none"]:
        """`unit`, or none where importance is signed: as `importance.abs` says it."""
        return "none" if self.signed else self.unit

    def own_model(self, model: ModelSettings) -> ModelSettings:
        """The settings of this run's model, in an experiment whose models are `model`.

        Raises ValueError for a number of heads that makes no model of the same width.
        """
        if self.attention_heads is None:
            return model
        expected = f"run {label(self)!r}: attention_heads: expected"
        if model.d_head is not None:
            raise ValueError(
                f"{expected} a model whose heads are together as wide as d_model, found one that "
                "names d_head; remove d_head from `model`, or this run"
            )
        if model.d_model % self.attention_heads:
            divisors = (n for n in range(1, MOST_IN_A_ROW + 1) if model.d_model % n == 0)
            raise ValueError(
                f"{expected} a divisor of d_model {model.d_model} "
                f"({', '.join(map(str, divisors))}), found {self.attention_heads}"
            )
        return model.model_validate(model.model_dump() | {"heads": self.attention_heads})

    def counted(self, model: ModelSettings) -> "RunSettings":
        """The same run on such a model in its one spelling: with N in place of a share, and the
        baseline for as many heads as the model has anyway.

        Shares are rounded to the nearest count, halves up. Raises ValueError if there are fewer
        than N heads to mask, and as `own_model`.
        """
        if self.method == "baseline":
            return BASELINE if self.own_model(model) == model else self
        heads = model.grid.size
        if self.share is not None:
            percent = Fraction(self.share.removesuffix("%"))
            count = max(floor(percent * heads / 100 + Fraction(1, 2)), bool(percent and heads))
            return self.model_copy(update={"heads": int(count), "share": None}).counted(model)
        most = heads - sum(model.grid.counts[self.spare]) if self.spare else heads
        if self.heads is not None and self.heads > most:
            outside = f" outside {self.spare}" if self.spare else ""
            raise _too_many(self, f"0 to {most} heads, as many as the model has{outside}", most)
        return self


BASELINE = RunSettings(method="baseline")


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
    """λ of the gates, the price of one head in nats per target token; 0: the control, which
    fine-tuning alone changes. Left out for `subset`, which has no price."""

    heads: int | None = Field(None, ge=1)
    """K, how many heads of the scope stay, for `subset` alone (`subset-all-k8`)."""

    init_from: _Start = Field(BASELINE, alias="from")
    """The training run whose model is pruned, one of `runs`; or `none`: gates from random weights,
    trained by `train` with nothing frozen. Its control is the baseline."""

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
    def control(self) -> "Run":
        """What says how much BLEU was lost: the same training without a price on heads.

        The run with λ = 0, which tells what fine-tuning alone does to the same model. Gates from
        random weights have as many updates as the baseline, so that is theirs: what it does not
        have, gates and their noise, belongs to the method.
        """
        if self.from_none:
            return BASELINE
        return self.model_copy(update={"method": "gates", "lambda_": 0.0, "heads": None})

    def counted(self, model: ModelSettings) -> "PrunedSettings":
        """This run on such a model, shares as numbers. Raises ValueError for too many `heads`."""
        inside = sum(sum(model.grid.counts[kind]) for kind in self.kinds)
        if self.heads is not None and self.heads > inside:
            raise _too_many(self, f"1 to {inside} heads, as many as the scope has", inside)
        if self.from_none:
            return self
        return self.model_copy(update={"init_from": self.init_from.counted(model)})


Run = RunSettings | PrunedSettings


def _too_many(run: Run, expected: str, most: int) -> ValueError:
    """What to say of a run with more heads than there are, and which run is nearest."""
    nearest_run = label(run.model_copy(update={"heads": most}))
    return ValueError(
        f"run {label(run)!r}: expected {expected}, found {run.heads}; nearest: {nearest_run}"
    )


def label(run: Run) -> str:
    """The name of a run in paths and tables: suffixes in a fixed order, numbers in one spelling."""
    if isinstance(run, PrunedSettings):
        start = NONE if run.from_none else run.start
        kept = run.heads or "<K>"  # a message may name the form alone
        size = kept if run.method == "subset" else run.lambda_
        return pruned_name(run.word, run.scope, size, "" if run.init_from == BASELINE else start)
    masked = None if run.method == "baseline" else run.heads if run.share is None else run.share
    return training_name(run.method, masked, run.model_dump(exclude_defaults=True))


def labels(runs: list[Run]) -> list[str]:
    """The name of each run."""
    return [label(run) for run in runs]
