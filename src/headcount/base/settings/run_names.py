"""Names of training variants: which heads are masked in each update of a run.

`baseline`; `random-<N>`, N heads drawn anew; `impt-<N>`, the N most important ones. N is a count,
or a share of the model's heads: `random-12.5%`. What `impt` does by default is the paper's rule;
suffixes change it: `impt-6-p0.5`, `impt-6-signed` or `-batch` or `-position`, `impt-6-ema0.9`.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Literal

from headcount.base.errors import UserError
from headcount.base.settings.nearest import nearest

_NAME = re.compile(r"(random|impt)-(-?\d{1,9})((?:\.\d{1,9})?%)?(|-[a-z].*)")
_SUFFIX = re.compile(r"(p|ema)(\d{1,9}(?:\.\d{1,4})?)|(signed|batch|position)")

_UNITS = {"signed": "none", "batch": "batch", "position": "position"}
"""Suffixes that say what the absolute value of importance is taken of, as `importance.abs` does."""


@dataclass(frozen=True)
class RunName:
    """One training variant. `str()` is its name in paths: a count, suffixes in a fixed order."""

    method: Literal["baseline", "random", "impt"] = "baseline"
    count: int = 0  # heads to mask
    probability: float = 1.0  # of masking at all, per update
    unit: str = "sentence"  # of importance's absolute value; none: rank by −∂L/∂ξ, mask no harm
    decay: float = 0.0  # of the average of importance over updates; 0: this update alone

    def __str__(self) -> str:
        if self.method == "baseline":
            return self.method
        suffixes = [f"p{self.probability:g}"] if self.probability < 1 else []
        suffixes += [name for name, unit in _UNITS.items() if unit == self.unit]
        suffixes += [f"ema{self.decay:g}"] if self.decay > 0 else []
        return "-".join([self.method, str(self.count), *suffixes])


BASELINE = RunName()


def parse_run(text: str, heads: int) -> RunName:
    """The run of a name, for a model with this many heads.

    A share of the heads becomes a count, rounded to the nearest (halves up), at least 1 unless the
    share is 0. Raises UserError saying what is expected, with the nearest name that would do.
    """
    if text == str(BASELINE):
        return BASELINE
    found = _NAME.fullmatch(text)
    if not found:
        raise UserError(_expected(text))
    method, whole, share, suffixes = found.groups()
    if suffixes and method != "impt":
        plain = text.removesuffix(suffixes)
        raise UserError(f"run {text[:100]!r}: only impt takes suffixes; nearest: {plain}")
    count = _count(text, method, whole, share, heads)
    return RunName(method, count, **_variant(text, suffixes))


def _count(text: str, method: str, whole: str, share: str | None, heads: int) -> int:
    """Number of heads to mask, of a count or a share."""
    if share is None:
        count = int(whole)
        if not 0 <= count <= heads:
            raise UserError(
                f"run {text[:100]!r}: expected 0 to {heads} heads, as many as the model has, "
                f"found {count}; nearest: {method}-{min(max(count, 0), heads)}"
            )
        return count
    percent = Fraction(whole + share.removesuffix("%"))
    if not 0 <= percent <= 100:
        raise UserError(
            f"run {text[:100]!r}: expected 0% to 100% of the heads, found {whole}{share}; "
            f"nearest: {method}-{100 if percent > 0 else 0}%"
        )
    nearest_count = floor(percent * heads / 100 + Fraction(1, 2))
    return max(nearest_count, 1 if percent and heads else 0)


def _variant(text: str, suffixes: str) -> dict[str, float | str]:
    """Fields of a RunName that the suffixes of `impt` set."""
    fields: dict[str, float | str] = {}
    for suffix in suffixes.split("-")[1:]:
        found = _SUFFIX.fullmatch(suffix)
        if not found:
            raise UserError(_expected(text))
        key, number, unit = found.groups()
        name = {"p": "probability", "ema": "decay", None: "unit"}[key]
        if name in fields:
            raise UserError(
                f"run {text[:100]!r}: -{unit or key} stands twice, or beside another of its kind "
                "(-signed, -batch and -position are of one); each may come once"
            )
        fields[name] = _UNITS[unit] if unit else float(number)
    if not 0 < fields.get("probability", 1.0) <= 1:
        raise UserError(
            f"run {text[:100]!r}: expected a probability above 0 and at most 1, "
            f"found {fields['probability']:g}; nearest: -p0.5, or no suffix for always"
        )
    if not 0 <= fields.get("decay", 0.0) < 1:
        raise UserError(
            f"run {text[:100]!r}: expected a decay of 0 or more and less than 1, "
            f"found {fields['decay']:g}; nearest: -ema0.9"
        )
    return fields


def _expected(text: str) -> str:
    """What a name may be, and which is nearest to this one, with its own numbers."""
    numbers = [*re.findall(r"\d+(?:\.\d+)?%|\d+", text)[:1], "6"]
    forms = ["baseline", f"random-{numbers[0]}", f"impt-{numbers[0]}"]
    forms += [f"impt-{numbers[0]}-{suffix}" for suffix in ("p0.5", *_UNITS, "ema0.9")]
    return (
        "expected baseline, random-<N>, random-<P>%, impt-<N> or impt-<P>%, impt with any of "
        "-p<0 to 1>, -ema<0 to 1> (at most 4 decimals) and one of -signed, -batch and -position, "
        f"found {text[:100]!r}; "
        f"{nearest(text, forms)}"
    )
