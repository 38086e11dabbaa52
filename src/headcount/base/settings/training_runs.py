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

_ALL = frozenset({"baseline", "random", "drophead", "importance"})
_MASKS = _ALL - {"baseline"}
_COUNTS = _MASKS - {"drophead"}
_DRAWS = _MASKS - {"importance"}
_IMPORTANCE = frozenset({"importance"})

VARIANTS: dict[str, tuple[str, frozenset[str]]] = {
    "heads": ("", _COUNTS),
    "share": ("", _COUNTS),
    "head_probability": ("", frozenset({"drophead"})),
    "attention_heads": ("h", frozenset({"baseline"})),
    "probability": ("p", _IMPORTANCE),
    "signed": ("signed", _IMPORTANCE),
    "unit": ("", _IMPORTANCE),
    "decay": ("ema", _IMPORTANCE),
    "exclude_kind": ("spare_", _IMPORTANCE),
    "cooldown_updates": ("rest", _COUNTS),
    "warmup_mask_updates": ("held", _IMPORTANCE),
    "start_update": ("after", _MASKS),
    "rescale": ("", _MASKS),
    "scope": ("", _COUNTS),
    "draw": ("", _DRAWS),
    "schedule": ("", _DRAWS),
    "dropout": ("d", _ALL),
}
"""Keys of a training run in the order of labels: letters before the value, methods with the key."""

_WORDS = {"importance": "impt"}  # in labels, for methods that have another name there
_OWN = {"rescale": "none", "scope": "model", "draw": "update", "schedule": "constant"}
_DROPHEAD = {"rescale": "layer", "draw": "sentence", "schedule": "v"}
_SCALED = {"none": "unscaled", "layer": "rescaled"}  # in labels


class RunSettings(Section):
    """A training run: which heads are masked in each of its updates, or how many there are."""

    method: Literal["baseline", "random", "drophead", "importance"]
    """Mask no head; N heads, drawn anew; every head with one probability; or the N most important
    heads for the very batch."""
    heads: int | None = Field(None, ge=0)
    """N, how many heads are masked."""
    share: str | None = Field(None, pattern=r"^\d{1,3}(\.\d{1,9})?%$")
    """In place of N, a share of the model's heads, as in `12.5%`: the nearest number, not 0."""
    head_probability: float | None = Field(None, ge=0, le=1)
    """For `drophead` in place of N: the probability p of each head (`drophead-0.2`)."""
    attention_heads: int | None = Field(None, ge=1, le=MOST_IN_A_ROW)
    """Heads of every attention layer, in place of `model.heads`: a divisor of d_model, whose width
    stays. For `baseline` (`baseline-h1`), which must be among the runs without it, too."""
    dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout in place of `model.dropout`, for any method (`baseline-d0.2`), and of
    `model.attention_dropout` if that is above 0."""
    probability: float = Field(1.0, gt=0, le=1)
    """Share of the updates that mask heads, drawn at random (`-p0.5`). This key and those below
    depart from HeadMask. All but `draw` and `schedule` are for `importance`, `cooldown_updates` and
    those from `start_update` on for `random`, too."""
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
    rescale: Literal["none", "layer"] | None = None
    """`layer`: multiply the heads left in a layer of an attention type by its heads ÷ heads left
    (`-rescaled`). Default: `none`, for `drophead` `layer` (`none` is `-unscaled`)."""
    scope: Literal["model", "layer"] | None = None
    """N heads of the whole `model` (default), or of every `layer` of an attention type (`-layer`),
    for `random` and `importance`."""
    draw: Literal["update", "sentence"] | None = None
    """Draw heads once per `update`, or for every `sentence` of it (`-sentence`). For `random`
    (default `update`) and `drophead` (default `sentence`)."""
    schedule: Literal["constant", "linear", "v"] | None = None
    """N or p over training: `constant`; `linear`: rises from 0 over all updates; `v`: falls to 0
    over `train.warmup_updates`, then rises. For `random` (default `constant`), `drophead` (`v`)."""

    def _faults(self) -> Faults:
        extra = [key for key in self._given if self.method not in VARIANTS[key][1]]
        counts, dropped = self.method in _COUNTS, self.method == "drophead"
        unclear = counts and (self.heads is None) == (self.share is None)
        both = self.cooldown_updates and self.warmup_mask_updates
        resting = self.cooldown_updates and self.draw == "sentence"
        yield f"method {self.method} takes no {' and no '.join(extra)}", extra
        yield f"method {self.method}: expected heads or share, one of the two", unclear
        yield "expected head_probability", dropped and self.head_probability is None
        yield "expected signed or unit, one of the two", self.signed and self.unit != "sentence"
        yield "expected cooldown_updates or warmup_mask_updates, one of the two", both
        yield "expected cooldown_updates or draw: sentence, one of the two", resting

    @property
    def label(self) -> str:
        """The name in paths and tables: `impt-6-p0.5`."""
        parts = [_WORDS.get(self.method, self.method)]
        for key, value in self._given.items():
            word = _SCALED.get(value) if key == "rescale" else None
            parts.append(word or VARIANTS[key][0] + ("" if value is True else written(value)))
        return "-".join(parts)

    @property
    def _given(self) -> dict[str, Any]:
        """Values of keys other than the method's defaults, in the order of labels."""
        values = self.model_dump(exclude_defaults=True)
        return {k: values[k] for k in VARIANTS if k in values and values[k] != self._own.get(k)}

    @property
    def _own(self) -> dict[str, str]:
        return _OWN | (_DROPHEAD if self.method == "drophead" else {})

    def chosen(self, key: str) -> str:
        """Return `rescale`, `scope`, `draw` or `schedule` as given, or the method's default."""
        return getattr(self, key) or self._own[key]

    @property
    def masks(self) -> bool:
        """True if the run masks heads in some update."""
        return bool(self.heads or self.head_probability)

    @property
    def rule_from(self) -> int:
        """Updates before the first in which the run chooses heads by its method."""
        return self.start_update + self.warmup_mask_updates

    @property
    def way(self) -> str:
        """Name of the way to choose heads: the label without N and without dropout."""
        amounts = ("heads", "share", "head_probability", "dropout")
        return self.model_copy(update=dict.fromkeys(amounts)).label

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
        """Return the run with N in place of a share, and without what it has anyway."""
        own, layers = self.own_model(model), self.chosen("scope") == "layer"
        rows = {kind: [count for count in of if count] for kind, of in model.grid.counts.items()}
        total = _room(rows, layers)
        changes: dict[str, Any] = {"attention_heads": None} if own.heads == model.heads else {}
        changes |= {"dropout": None} if own.dropout == model.dropout else {}
        changes |= {key: None for key, value in self._own.items() if getattr(self, key) == value}
        if self.share is not None:
            percent = Fraction(self.share.removesuffix("%"))
            count = max(floor(percent * total / 100 + Fraction(1, 2)), bool(percent and total))
            changes |= {"heads": int(count), "share": None}
        run = self.model_copy(update=changes)
        rows.pop(self.exclude_kind, None)
        most = _room(rows, layers) // (self.cooldown_updates + 1)
        refuse((f"run {run.label!r}: expected at most {most} heads", (run.heads or 0) > most))
        return run

    @model_validator(mode="before")
    @classmethod
    def _read_baseline(cls, given: Any) -> Any:
        form = "expected baseline, or a mapping such as {method: random, heads: 6}"
        refuse((f"{form}, found {given!r}", isinstance(given, str) and given != "baseline"))
        return {"method": given} if given == "baseline" else given


def _room(rows: dict[str, list[int]], layers: bool) -> int:
    """Return the heads that N is counted of: of the smallest layer, or of the whole model."""
    counts = [count for of_kind in rows.values() for count in of_kind]
    return min(counts, default=0) if layers else sum(counts)


BASELINE = RunSettings(method="baseline")


def written(value: float | str) -> str:
    """Return a value as names have it: numbers in plain decimal digits."""
    return value if isinstance(value, str) else f"{Decimal(repr(value)):f}".removesuffix(".0")
