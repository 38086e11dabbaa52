"""Training runs as settings: which heads a training masks, or how many it has, and its dropout.

`label` writes the short name of a run, as in paths: `impt-6-p0.5`. Only people's input is read as
short names: in a file, and `--run`. Programs read the settings in `run.json`.
"""

import re
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Any, Literal

from pydantic import Field, model_validator

from headcount.base.settings.model import MOST_IN_A_ROW, ModelSettings
from headcount.base.settings.section import Faults, Section, nearest, refuse

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
_CHOICES = {
    "rescale": {"unscaled": "none", "rescaled": "layer"},
    "scope": {"model": "model", "layer": "layer"},
    "draw": {"update": "update", "sentence": "sentence"},
    "schedule": {"constant": "constant", "linear": "linear", "v": "v"},
}  # values of keys by their words in labels; the first is the default, except for DropHead
_DROPHEAD = {"rescale": "layer", "draw": "sentence", "schedule": "v"}
_NAME = re.compile(r"(baseline|random|drophead|impt)(?:-(\d[\d.]*)(%?))?((?:-[a-z][\w.]*)*)")


class NamedSettings(Section):
    """A run that people may write as a short name."""

    @model_validator(mode="before")
    @classmethod
    def _read_short_name(cls, given: Any) -> Any:
        return cls._read_name(given) if isinstance(given, str) else given


class RunSettings(NamedSettings):
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
        """The short name, as in paths: `impt-6-p0.5`."""
        parts = [_WORDS.get(self.method, self.method)]
        for key, value in self._given.items():
            words = {value: word for word, value in _CHOICES.get(key, {}).items()}
            parts.append(words.get(value, VARIANTS[key][0] + written(value)))
        return "-".join(parts)

    @property
    def _given(self) -> dict[str, Any]:
        """Values of keys other than the method's defaults, in the order of labels."""
        values = self.model_dump(exclude_defaults=True)
        return {k: values[k] for k in VARIANTS if k in values and values[k] != self._own(k)}

    def _own(self, key: str) -> str | None:
        """Return the method's default of a key that has another one for DropHead."""
        own = _DROPHEAD if self.method == "drophead" else {}
        return own.get(key, next(iter(_CHOICES.get(key, {}).values()), None))

    def chosen(self, key: str) -> str:
        """Return `rescale`, `scope`, `draw` or `schedule` as given, or the method's default."""
        return getattr(self, key) or self._own(key)

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
        """Return the run with N in place of a share, and without what it has anyway.

        Halves are rounded up. Raises ValueError if fewer than N heads can be masked.
        """
        own, layers = self.own_model(model), self.chosen("scope") == "layer"
        rows = {kind: [count for count in of if count] for kind, of in model.grid.counts.items()}
        total = _room(rows, layers)
        changes: dict[str, Any] = {"attention_heads": None} if own.heads == model.heads else {}
        changes |= {"dropout": None} if own.dropout == model.dropout else {}
        changes |= {key: None for key in _CHOICES if getattr(self, key) == self._own(key)}
        if self.share is not None:
            percent = Fraction(self.share.removesuffix("%"))
            count = max(floor(percent * total / 100 + Fraction(1, 2)), bool(percent and total))
            changes |= {"heads": int(count), "share": None}
        run = self.model_copy(update=changes)
        rows.pop(self.exclude_kind, None)
        most = _room(rows, layers) // (self.cooldown_updates + 1)
        refuse((f"run {run.label!r}: expected at most {most} heads", (run.heads or 0) > most))
        return run

    @classmethod
    def _read_name(cls, text: str) -> dict[str, Any]:
        forms = ("random-6", "random-12.5%", "drophead-0.2", "impt-6")
        word, amount, percent, end = match_name(_NAME, text, *forms)
        settings: dict[str, Any] = {"method": "importance" if word == "impt" else word}
        key = "share" if percent else "head_probability" if word == "drophead" else "heads"
        settings |= {key: amount + percent if percent else number(amount)} if amount else {}
        for part in end.split("-")[1:]:
            letters, digits = re.fullmatch(r"(\D*)(.*)", part).groups()
            key = letters and next(
                (key for key, (before, _) in VARIANTS.items() if before == letters), ""
            )
            value = number(digits) if digits else True
            choice = [name for name, words in _CHOICES.items() if part in words]
            if choice:
                key, value = choice[0], _CHOICES[choice[0]][part]
            elif not key:
                key = "exclude_kind" if "spare_" in part else "unit"
                value = part.removeprefix("spare_")
            refuse((f"expected {key} once, found {text!r}", key in settings))
            settings[key] = value
        return settings


def _room(rows: dict[str, list[int]], layers: bool) -> int:
    """Return the heads that N is counted of: of the smallest layer, or of the whole model."""
    counts = [count for of_kind in rows.values() for count in of_kind]
    return min(counts, default=0) if layers else sum(counts)


BASELINE = RunSettings(method="baseline")


def label(run: Any) -> str:
    """Return the short name of a training run or a pruned run, as in paths and tables."""
    return run.label


def written(value: float | str) -> str:
    """Return a value as names have it: numbers in plain decimal digits, True as nothing."""
    if value is True:
        return ""
    return value if isinstance(value, str) else f"{Decimal(repr(value)):f}".removesuffix(".0")


def number(text: str) -> int | float:
    """Return the number that a name has."""
    return float(text) if "." in text else int(text)


def match_name(pattern: re.Pattern[str], text: str, *forms: str) -> tuple[str, ...]:
    """Return the groups of a short name. Raises ValueError with the nearest of the `forms`."""
    if match := pattern.fullmatch(text):
        return match.groups()
    hint = nearest(text, forms)
    raise ValueError(f"expected a run such as {forms[0]}, found {text[:100]!r}; {hint}")
