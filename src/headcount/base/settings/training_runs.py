"""Training runs as settings: which heads a training masks, or how many there are, and its dropout.

A run is a mapping of these keys or its short name (`short_names.py`).
"""

from fractions import Fraction
from math import floor
from typing import Any, Literal

from pydantic import Field, model_validator

from headcount.base.settings.model import MOST_IN_A_ROW, ModelSettings
from headcount.base.settings.section import Section
from headcount.base.settings.short_names import (
    check_decimals,
    check_share,
    read_training_name,
    training_name,
)

_KEYS = {
    "baseline": {"attention_heads", "dropout"},
    "random": {"heads", "share", "dropout", "rest", "after"},
    "importance": {"heads", "share", "dropout", "probability", "signed", "unit", "decay", "spare"}
    | {"rest", "held", "held_in", "after"},
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

    dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout in place of `model.dropout`, for any method (`baseline-d0.2`, `random-6-d0`), and of
    `model.attention_dropout` if that is above 0; as much as the model has is the run without it."""

    probability: float = Field(1.0, gt=0, le=1)
    """Share of the updates that mask heads, drawn at random (`-p0.5`); the others have all heads
    on and no first pass. This key and those below are for `importance`, `rest` and `after` for
    `random`, too; all depart from the paper."""

    signed: bool = False
    """Rank by −∂L/∂ξ, to first order what masking adds to the loss, and mask only heads where
    that is above 0, so that there may be fewer than N (`-signed`)."""

    unit: Literal["sentence", "batch", "position", "token"] = "sentence"
    """What the absolute value of importance is taken of: the derivative of a sentence's loss, of a
    batch's (`-batch`), each query position's share (`-position`), or each target token's loss
    (`-token`, slow: a backward pass per target position); as in `importance.abs`."""

    decay: float = Field(0.0, ge=0, lt=1)
    """Weight of the past in a moving average of importance over updates (`-ema0.9`); 0: this update
    alone. It has nothing to do with `train.ema_decay`, the average of weights."""

    spare: Literal["enc_self", "dec_self", "dec_enc"] | None = None
    """A kind of attention whose heads are never masked (`-spare_dec_self`); a share is of all."""

    rest: int = Field(0, ge=0, le=999_999)
    """A head that was masked is not masked in so many updates after it (`-rest3`, also for
    `random`), so that it is trained in them. N heads must be left to mask."""

    held: int = Field(0, ge=0, le=999_999)
    """In so many first updates, N heads drawn by the run seed are masked in place of the most
    important (`-held60`): an experiment on whether heads that the rest has learnt to do without
    stay masked afterwards. First passes are made in these updates too."""

    held_in: Literal["enc_self", "dec_self", "dec_enc"] | None = None
    """The held heads are drawn from the first layer of this kind of attention, not from the whole
    model (`-held60-held_in_dec_self`)."""

    after: int = Field(0, ge=0, le=999_999)
    """So many first updates mask no head and have no first pass; `held` begins after them
    (`-after200`, also for `random`)."""

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
        if self.rest and self.held:
            raise ValueError("held heads are masked in every update and cannot rest; remove one")
        if self.held_in and not self.held:
            raise ValueError("held_in says which heads are held: expected held too, as in -held60")
        if self.held_in and self.held_in == self.spare:
            raise ValueError(f"expected other heads held than are spared, found {self.spare} twice")
        for key in ("probability", "decay", "dropout"):
            check_decimals(key, getattr(self, key) or 0.0, 4)
        if self.share is not None:
            check_share(self.share)
        return self

    @property
    def label(self) -> str:
        """The name in paths and tables: suffixes in a fixed order, numbers in one spelling."""
        masked = self.heads if self.share is None else self.share
        said = self.model_dump(exclude_defaults=True)
        return training_name(self.method, None if self.method == "baseline" else masked, said)

    @property
    def derivative_of(self) -> Literal["sentence", "batch", "position", "token", "none"]:
        """`unit`, or none where importance is not the size of one: as `importance.abs` says it."""
        return "none" if self.signed else self.unit

    @property
    def rule_from(self) -> int:
        """Updates before the first in which the run chooses heads by its method."""
        return self.after + self.held

    @property
    def way(self) -> str:
        """Name of the way to choose heads: `label` without N and without dropout."""
        said = self.model_dump(exclude_defaults=True, exclude={"heads", "share", "dropout"})
        return training_name(self.method, None, said)

    def own_model(self, model: ModelSettings) -> ModelSettings:
        """The settings of this run's model, in an experiment whose models are `model`.

        Raises ValueError for a number of heads that makes no model of the same width.
        """
        own = model if self.dropout in (None, model.dropout) else model.with_dropout(self.dropout)
        if self.attention_heads is None:
            return own
        try:
            return own.with_heads(self.attention_heads)
        except ValueError as fault:
            raise ValueError(f"run {self.label!r}: {fault}") from None

    def counted(self, model: ModelSettings) -> "RunSettings":
        """The same run on such a model in its one spelling: with N in place of a share, and
        without the heads of a layer, or the dropout, that the model has anyway.

        Shares are rounded to the nearest count, halves up. Raises ValueError if there are fewer
        than N heads to mask, and as `own_model`.
        """
        own = self.own_model(model)
        said = {
            "attention_heads": own.heads == model.heads,
            "dropout": own.dropout == model.dropout,
        }
        run = self.model_copy(update={key: None for key, same in said.items() if same})
        heads = model.grid.size
        if self.share is not None:
            percent = Fraction(self.share.removesuffix("%"))
            count = max(floor(percent * heads / 100 + Fraction(1, 2)), bool(percent and heads))
            return run.model_copy(update={"heads": int(count), "share": None}).counted(model)
        most = heads - sum(model.grid.counts[self.spare]) if self.spare else heads
        most //= self.rest + 1
        if self.heads is not None and self.heads > most:
            outside = f" outside {self.spare}" if self.spare else ""
            outside += f" for each of {self.rest + 1} updates in a row" if self.rest else ""
            expected = f"0 to {most} heads, as many as the model has{outside}"
            nearest = run.model_copy(update={"heads": most}).label
            raise too_many(run.label, expected, run.heads, nearest)
        if self.held_in and self.heads > (most := model.grid.counts[self.held_in][0]):
            expected = f"0 to {most} heads, as many as the first layer of {self.held_in} has"
            nearest = run.model_copy(update={"heads": most}).label
            raise too_many(run.label, expected, run.heads, nearest)
        return run


BASELINE = RunSettings(method="baseline")


def too_many(run: str, expected: str, found: int, nearest: str) -> ValueError:
    """What to say of a run with more heads than there are, and which run is nearest."""
    return ValueError(f"run {run!r}: expected {expected}, found {found}; nearest: {nearest}")
