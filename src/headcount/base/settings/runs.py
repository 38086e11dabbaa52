"""Runs as settings: which heads a training masks, and how a trained model is pruned.

A run is written as a mapping of these keys or by its short name (`short_names.py`). `label` is the
name that paths carry; `run.json` stands beside the model of every run.
"""

import re
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from headcount.base.addresses import SCOPES
from headcount.base.errors import UserError
from headcount.base.files import read_json, write_json
from headcount.base.settings.section import Section
from headcount.base.settings.short_names import (
    PRUNED_WORDS,
    SUFFIXES,
    TRAINING_WORDS,
    decimal,
    read_pruned_name,
    read_training_name,
)

RUN_FILE = "run.json"

_MOST_LAMBDA = 10**6
_KEYS = {"baseline": ("method",), "random": ("method", "heads", "share")}  # importance takes all


def _check_decimals(key: str, value: float, most: int) -> None:
    """Raise ValueError for a number that a label could not hold."""
    if round(value, most) != value:
        raise ValueError(f"{key}: expected at most {most} decimals, found {value!r}")


class RunSettings(Section):
    """A training run: which heads are masked in each of its updates."""

    method: Literal["baseline", "random", "importance"]
    """No head; N heads, drawn anew from the whole model; or the N most important ones for the very
    batch."""

    heads: int | None = Field(None, ge=0)
    """N, how many heads are masked."""

    share: str | None = None
    """In place of N, a share of the model's heads, as in `12.5%`: the nearest number, at least 1
    unless the share is 0."""

    probability: float = Field(1.0, gt=0, le=1)
    """Share of the updates that mask heads, drawn at random (`-p0.5`); the others have all heads
    on and no first pass. This key and those below are for `importance`, and depart from the
    paper."""

    signed: bool = False
    """Rank by −∂L/∂ξ, to first order what masking adds to the loss, and mask only heads where
    that is above 0, so that there may be fewer than N (`-signed`)."""

    unit: Literal["sentence", "batch", "position"] = "sentence"
    """What the absolute value of importance is taken of: the derivative of a sentence's loss, of a
    batch's (`-batch`), or of each query position's share (`-position`); as in `importance.abs`."""

    decay: float = Field(0.0, ge=0, lt=1)
    """Weight of the past in a moving average of importance over updates (`-ema0.9`); 0: this update
    alone."""

    @model_validator(mode="before")
    @classmethod
    def _read_short_name(cls, given: Any) -> Any:
        return read_training_name(given) if isinstance(given, str) else given

    @model_validator(mode="after")
    def _check_keys(self) -> "RunSettings":
        said = list(self.model_dump(exclude_defaults=True))
        allowed = _KEYS.get(self.method, said)
        if extra := [key for key in said if key not in allowed]:
            raise ValueError(
                f"method {self.method} takes no {' and no '.join(extra)}; remove it, or take "
                f"method {'random or ' if set(extra) <= {'heads', 'share'} else ''}importance"
            )
        if self.method != "baseline" and (self.heads is None) == (self.share is None):
            raise ValueError(f"method {self.method}: expected heads or share, one of the two")
        if self.signed and self.unit != "sentence":
            raise ValueError(f"signed takes no absolute value, so no unit; remove {self.unit}")
        for key in ("probability", "decay"):
            _check_decimals(key, getattr(self, key), 4)
        return self

    @model_validator(mode="after")
    def _check_share(self) -> "RunSettings":
        if self.share is None:
            return self
        found = re.fullmatch(r"(-?\d{1,9}(?:\.\d{1,9})?)%", self.share)
        if not found or not 0 <= Fraction(found[1]) <= 100:
            most = "100%" if found and Fraction(found[1]) > 0 else "0%"
            raise ValueError(
                f"share: expected 0% to 100% of the heads, as in 12.5%, found {self.share[:100]}; "
                f"nearest: {most if found else '12.5%'}"
            )
        return self

    @property
    def derivative_of(self) -> Literal["sentence", "batch", "position", "none"]:
        """`unit`, or none where importance is signed: as `importance.abs` says it."""
        return "none" if self.signed else self.unit

    def counted(self, heads: int) -> "RunSettings":
        """The same run of a model with this many heads, with N in place of a share.

        Shares are rounded to the nearest count, halves up. Raises ValueError if there are fewer
        than N heads.
        """
        if self.share is not None:
            percent = Fraction(self.share.removesuffix("%"))
            count = max(floor(percent * heads / 100 + Fraction(1, 2)), bool(percent and heads))
            return self.model_copy(update={"heads": int(count), "share": None})
        if self.heads is not None and self.heads > heads:
            nearest_run = label(self.model_copy(update={"heads": heads}))
            raise ValueError(
                f"run {label(self)!r}: expected 0 to {heads} heads, as many as the model has, "
                f"found {self.heads}; nearest: {nearest_run}"
            )
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

    method: Literal["gates", "scratch", "importance", "random"]
    """Train with a gate on every head, a trained model further or one from random weights (`from`),
    and remove the heads whose gates close; or, to compare with that: train the heads that the gates
    kept from a random start; keep as many by importance, or as many at random, both fine-tuned for
    as long."""

    scope: Literal["enc_self", "all"] = "all"
    """Which heads may go: those of encoder self-attention (a trained decoder is then frozen), or
    all."""

    lambda_: float = Field(alias="lambda", ge=0, lt=_MOST_LAMBDA)
    """λ of the gates, the price of one head in nats per target token; 0: the control, which
    fine-tuning alone changes."""

    init_from: _Start = Field(BASELINE, alias="from")
    """The training run whose model is pruned, one of `runs`; or `none`: gates from random weights,
    trained by `train` with nothing frozen. Its control is the baseline."""

    @model_validator(mode="before")
    @classmethod
    def _read_short_name(cls, given: Any) -> Any:
        return read_pruned_name(given) if isinstance(given, str) else given

    @model_validator(mode="after")
    def _check_lambda(self) -> "PrunedSettings":
        _check_decimals("lambda", self.lambda_, 9)
        return self

    @model_validator(mode="after")
    def _check_start(self) -> "PrunedSettings":
        if self.from_none and self.method in ("importance", "random"):
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
        """What names and tables call the method: gates, scratch, ranked or drawn."""
        return PRUNED_WORDS[self.method]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of attention that may lose heads; those of any other kind all stay."""
        return SCOPES[self.scope]

    @property
    def gates_run(self) -> "PrunedSettings":
        """The gates run that says how many heads stay, and for `scratch` which."""
        return self.model_copy(update={"method": "gates"})

    @property
    def control(self) -> "Run":
        """What says how much BLEU was lost: the same training without a price on heads.

        The run with λ = 0, which tells what fine-tuning alone does to the same model. Gates from
        random weights have as many updates as the baseline, so that is theirs: what it does not
        have, gates and their noise, belongs to the method.
        """
        if self.from_none:
            return BASELINE
        return self.model_copy(update={"method": "gates", "lambda_": 0.0})

    def counted(self, heads: int) -> "PrunedSettings":
        """This run on a model with so many heads, a share of them resolved to the number N."""
        if self.from_none:
            return self
        return self.model_copy(update={"init_from": self.init_from.counted(heads)})


Run = RunSettings | PrunedSettings


def label(run: Run) -> str:
    """The name of a run in paths and tables: suffixes in a fixed order, numbers in one spelling."""
    if isinstance(run, PrunedSettings):
        before = "" if run.method == "gates" else f"{run.word}-"
        start = NONE if run.from_none else run.start
        after = "" if run.init_from == BASELINE else f"-from-{start}"
        return f"{before}gates-{run.scope}-l{decimal(run.lambda_)}{after}"
    if run.method == "baseline":
        return run.method
    text = f"{TRAINING_WORDS[run.method]}-{run.heads if run.share is None else run.share}"
    changed = run.model_dump(exclude_defaults=True)
    for letters, (key, kind) in SUFFIXES.items():
        if key in changed and (kind is not str or changed[key] == letters):
            text += f"-{letters}{changed[key]:g}" if kind is float else f"-{letters}"
    return text


def labels(runs: list[Run]) -> list[str]:
    """The name of each run."""
    return [label(run) for run in runs]


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
        run = kind.model_validate(found)
    except ValidationError:
        raise UserError(f"{path}: expected the settings of a run; make the run again") from None
    if label(run) != written:
        raise UserError(
            f"{path}: expected the run {label(run)}, as its settings say, found {written!r}; make "
            "the run again"
        )
    return run
