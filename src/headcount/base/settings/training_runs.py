"""Training runs as settings: which heads a training masks, or how many it has, and its dropout.

Labels such as `impt-6-p0.5` are written, as in paths, and never read: files and `--run` have the
settings.
"""

from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Any, Literal

from pydantic import Field, model_validator

from headcount.base.settings.model import MOST_IN_A_ROW, ModelSettings
from headcount.base.settings.section import Faults, Section, refuse

_ALL = frozenset({"baseline", "random", "importance"})
_MASKS = _ALL - {"baseline"}
_IMPORTANCE = frozenset({"importance"})

VARIANTS: dict[str, tuple[str, frozenset[str]]] = {
    "heads": ("", _MASKS),
    "share": ("", _MASKS),
    "attention_heads": ("h", frozenset({"baseline"})),
    "probability": ("p", _IMPORTANCE),
    "signed": ("signed", _IMPORTANCE),
    "unit": ("", _IMPORTANCE),
    "decay": ("ema", _IMPORTANCE),
    "exclude_kind": ("spare_", _IMPORTANCE),
    "cooldown_updates": ("rest", _MASKS),
    "warmup_mask_updates": ("held", _IMPORTANCE),
    "start_update": ("after", _MASKS),
    "dropout": ("d", _ALL),
}
"""Keys of a training run in the order of labels: letters before the value, methods with the key."""

_WORDS = {"importance": "impt"}  # in labels, for methods that have another name there


class RunSettings(Section):
    """A training run: which heads are masked in each of its updates, or how many there are."""

    method: Literal["baseline", "random", "importance"]
    """Mask no head; N heads, drawn anew; or the N most important ones for the very batch."""
    heads: int | None = Field(None, ge=0)
    """N, how many heads are masked."""
    share: str | None = Field(None, pattern=r"^\d{1,3}(\.\d{1,9})?%$")
    """In place of N, a share of the model's heads, as in `12.5%`: the nearest number, not 0."""
    attention_heads: int | None = Field(None, ge=1, le=MOST_IN_A_ROW)
    """Heads of every attention layer, in place of `model.heads`: a divisor of d_model, whose width
    stays. For `baseline` (`baseline-h1`), which must be among the runs without it, too."""
    dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout in place of `model.dropout`, for any method (`baseline-d0.2`), and of
    `model.attention_dropout` if that is above 0."""
    probability: float = Field(1.0, gt=0, le=1)
    """Share of the updates that mask heads, drawn at random (`-p0.5`). This key and those below
    depart from the paper. All are for `importance`, `cooldown_updates` and `start_update` for
    `random`, too."""
    signed: bool = False
    """Rank by −∂L/∂ξ, and mask only heads where that is above 0 (`-signed`)."""
    unit: Literal["sentence", "batch", "position", "token"] = "sentence"
    """What the absolute value of importance is taken of (`-batch`), as in `importance.abs`."""
    decay: float = Field(0.0, ge=0, lt=1)
    """Weight of the past in a moving average of importance over updates (`-ema0.9`)."""
    exclude_kind: Literal["enc_self", "dec_self", "dec_enc"] | None = None
    """An attention type whose heads are never masked (`-spare_dec_self`); a share is of all."""
    cooldown_updates: int = Field(0, ge=0)
    """A head that was masked is not masked in so many updates after it (`-rest3`)."""
    warmup_mask_updates: int = Field(0, ge=0)
    """In so many first updates, N heads drawn by the run seed are masked (`-held60`)."""
    start_update: int = Field(0, ge=0)
    """So many first updates mask no head (`-after200`); `warmup_mask_updates` begins after them."""

    def _faults(self) -> Faults:
        extra = [key for key in self._given if self.method not in VARIANTS[key][1]]
        unclear = self.method != "baseline" and (self.heads is None) == (self.share is None)
        both = self.cooldown_updates and self.warmup_mask_updates
        yield f"method {self.method} takes no {' and no '.join(extra)}", extra
        yield f"method {self.method}: expected heads or share, one of the two", unclear
        yield "expected signed or unit, one of the two", self.signed and self.unit != "sentence"
        yield "expected cooldown_updates or warmup_mask_updates, one of the two", both

    @property
    def label(self) -> str:
        """The name in paths and tables: `impt-6-p0.5`."""
        parts = [_WORDS.get(self.method, self.method)]
        for key, value in self._given.items():
            parts.append(VARIANTS[key][0] + ("" if value is True else written(value)))
        return "-".join(parts)

    @property
    def _given(self) -> dict[str, Any]:
        """Values of keys other than their defaults, in the order of labels."""
        values = self.model_dump(exclude_defaults=True)
        return {key: values[key] for key in VARIANTS if key in values}

    @property
    def rule_from(self) -> int:
        """Updates before the first in which the run chooses heads by its method."""
        return self.start_update + self.warmup_mask_updates

    @property
    def way(self) -> str:
        """Name of the way to choose heads: the label without N and without dropout."""
        return self.model_copy(update=dict.fromkeys(("heads", "share", "dropout"))).label

    def own_model(self, model: ModelSettings) -> ModelSettings:
        """Return the settings of this run's model. Raises ValueError for heads of another width."""
        wrong = self.attention_heads and (model.d_head or model.d_model % self.attention_heads)
        refuse((f"attention_heads: expected a divisor of {model.d_model}, and no d_head", wrong))
        changes: dict[str, Any] = {"heads": self.attention_heads} if self.attention_heads else {}
        if self.dropout not in (None, model.dropout):
            of_attention = self.dropout if model.attention_dropout else 0.0
            changes |= {"dropout": self.dropout, "attention_dropout": of_attention}
        return model.model_copy(update=changes)

    def counted(self, model: ModelSettings) -> "RunSettings":
        """Return the run with N in place of a share, and without what the model has anyway.

        Halves are rounded up. Raises ValueError if fewer than N heads can be masked.
        """
        own, total = self.own_model(model), model.grid.size
        changes: dict[str, Any] = {"attention_heads": None} if own.heads == model.heads else {}
        changes |= {"dropout": None} if own.dropout == model.dropout else {}
        if self.share is not None:
            percent = Fraction(self.share.removesuffix("%"))
            count = max(floor(percent * total / 100 + Fraction(1, 2)), bool(percent and total))
            changes |= {"heads": int(count), "share": None}
        run = self.model_copy(update=changes)
        excluded = sum(model.grid.counts[self.exclude_kind]) if self.exclude_kind else 0
        most = (total - excluded) // (self.cooldown_updates + 1)
        refuse((f"run {run.label!r}: expected at most {most} heads", (run.heads or 0) > most))
        return run

    @model_validator(mode="before")
    @classmethod
    def _read_baseline(cls, given: Any) -> Any:
        form = "expected baseline, or a mapping such as {method: random, heads: 6}"
        refuse((f"{form}, found {given!r}", isinstance(given, str) and given != "baseline"))
        return {"method": given} if given == "baseline" else given


BASELINE = RunSettings(method="baseline")


def written(value: float | str) -> str:
    """Return a value as names have it: numbers in plain decimal digits."""
    return value if isinstance(value, str) else f"{Decimal(repr(value)):f}".removesuffix(".0")
