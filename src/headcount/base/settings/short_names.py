"""Short spellings of runs, as on command lines, in lists and in paths: `impt-6-p0.5`.

Each is read into the mapping that it stands for; the classes in `runs.py` check what that says.
Training runs: `baseline`; `random-<N>`; `impt-<N>`; each may have suffixes behind it.
Pruned runs: `gates-<scope>-l<λ>`, with `scratch-`, `ranked-` or `drawn-` before it, and
`-from-<run>` or `-from-none` behind; `subset-<scope>-k<K>`, perhaps with `-from-<run>`.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from headcount.base.addresses import SCOPES
from headcount.base.settings.names import nearest

TRAINING_WORDS = {"baseline": "baseline", "random": "random", "importance": "impt"}
AS_GATES = {"scratch": "scratch", "importance": "ranked", "random": "drawn"}
PRUNED_WORDS = {"gates": "gates", **AS_GATES, "subset": "subset"}
"""What short names and tables call a method; those of `AS_GATES` keep as many heads as gates."""

SUFFIXES = {
    "h": ("attention_heads", int),
    "p": ("probability", float),
    "signed": ("signed", bool),
    "batch": ("unit", str),
    "position": ("unit", str),
    "token": ("unit", str),
    "ema": ("decay", float),
    "spare_enc_self": ("spare", str),
    "spare_dec_self": ("spare", str),
    "spare_dec_enc": ("spare", str),
    "rest": ("rest", int),
    "held": ("held", int),
    "held_in_enc_self": ("held_in", str),
    "held_in_dec_self": ("held_in", str),
    "held_in_dec_enc": ("held_in", str),
    "after": ("after", int),
    "d": ("dropout", float),
}
"""What may stand behind `impt-<N>`, or the first one behind `baseline`, the last one behind any,
`rest` and `after` behind `random-<N>`, in this order: letters, the key that they set, its type.

The letters of a text are its value, perhaps behind its key; a number follows those of `NUMBERS`.
"""
NUMBERS = {int: "60", float: "0.5"}  # with an example

_TRAINING = re.compile(
    r"(?:(baseline)|(random|impt)-(-?\d{1,9}(?:\.\d{1,9})?%|-?\d{1,9}))((?:-[a-z][^-]*)*)"
)
_SUFFIX = re.compile(r"([a-z_]+)(\d{1,9}(?:\.\d{1,4})?)?")
_PRUNED = re.compile(r"(?:([a-z]+)-)?gates-([A-Za-z_]+)-l(-?\d{1,6}(?:\.\d{1,9})?)(?:-from-(.+))?")
_SUBSET = re.compile(r"subset-([A-Za-z_]+)-k(\d{1,6})(?:-from-(.+))?")


def read_training_name(text: str) -> dict[str, Any]:
    """The mapping that the short name of a training run stands for.

    Raises ValueError saying what is expected, with the nearest name that would do.
    """
    found = _TRAINING.fullmatch(text)
    if not found:
        raise ValueError(_training_forms(text))
    plain, word, masked, behind = found.groups()
    methods = {word: method for method, word in TRAINING_WORDS.items()}
    said: dict[str, Any] = {"method": methods[plain or word]}
    if masked:
        said |= {"share": masked} if masked.endswith("%") else {"heads": int(masked)}
    for suffix in behind.split("-")[1:]:
        key, value = _read_suffix(text, suffix)
        if key in said:
            raise ValueError(
                f"expected {key} once, but -{suffix} sets it again in {text[:100]!r}; remove one"
            )
        said[key] = value
    return said


def _read_suffix(text: str, suffix: str) -> tuple[str, Any]:
    """Key and value of what stands behind a name."""
    found = _SUFFIX.fullmatch(suffix)
    letters, number = found.groups() if found else ("", None)
    key, kind = SUFFIXES.get(letters, ("", None))
    if not key or (kind in NUMBERS) != (number is not None) or (kind is int and "." in number):
        raise ValueError(_training_forms(text))
    return key, kind(number or letters.removeprefix(f"{key}_"))


def read_pruned_name(text: str) -> dict[str, Any]:
    """The mapping that the short name of a pruned run stands for; `from` keeps its short name.

    Raises ValueError saying what is expected, with the nearest name that would do.
    """
    methods = {None: "gates"} | {word: method for method, word in AS_GATES.items()}
    if found := _SUBSET.fullmatch(text):
        scope, heads, start = found.groups()
        said = {"method": "subset", "scope": scope, "heads": int(heads)}
    elif (found := _PRUNED.fullmatch(text)) and found[1] in methods:
        word, scope, lambda_, start = found.groups()
        said = {"method": methods[word], "scope": scope, "lambda": float(lambda_)}
    else:
        raise ValueError(_pruned_forms(text))
    return said if start is None else {**said, "from": start}


def check_decimals(key: str, value: float, most: int) -> None:
    """Raise ValueError for a number that a label could not hold."""
    if round(value, most) != value:
        raise ValueError(f"{key}: expected at most {most} decimals, found {value!r}")


def check_share(text: str) -> None:
    """Raise ValueError for what is no share of the heads, with the nearest one."""
    found = re.fullmatch(r"(-?\d{1,9}(?:\.\d{1,9})?)%", text)
    if not found or not 0 <= Fraction(found[1]) <= 100:
        most = "100%" if found and Fraction(found[1]) > 0 else "0%"
        raise ValueError(
            f"share: expected 0% to 100% of the heads, as in 12.5%, found {text[:100]}; "
            f"nearest: {most if found else '12.5%'}"
        )


def training_name(method: str, masked: int | str | None, changed: Mapping[str, Any]) -> str:
    """The short name of a training run: N or a share that is masked, and the keys that differ."""
    text = TRAINING_WORDS[method] if masked is None else f"{TRAINING_WORDS[method]}-{masked}"
    for letters, (key, kind) in SUFFIXES.items():
        if key in changed and (kind is not str or changed[key] == letters.removeprefix(f"{key}_")):
            text += f"-{letters}{changed[key]:g}" if kind in NUMBERS else f"-{letters}"
    return text


def pruned_name(word: str, scope: str, size: float | str, start: str) -> str:
    """The short name of a pruned run: `size` is λ, or K of a subset; `start` is empty as a rule."""
    after = f"-from-{start}" if start else ""
    if word == "subset":
        return f"subset-{scope}-k{size}{after}"
    before = "" if word == "gates" else f"{word}-"
    return f"{before}gates-{scope}-l{decimal(size)}{after}"


def _training_forms(text: str) -> str:
    """What a name may be, and which is nearest to this one, with its own numbers."""
    number = [*re.findall(r"\d+(?:\.\d+)?%|\d+", text), "6"][0]
    kinds = {letters: kind for letters, (_, kind) in list(SUFFIXES.items())[1:]}
    forms = ["baseline", f"random-{number}", f"impt-{number}"]
    forms += [f"impt-{number}-{word}{NUMBERS.get(kind, '')}" for word, kind in kinds.items()]
    forms += [f"random-{number}-{word}" for word in ("d0.1", "rest60", "after60")]
    forms += [f"baseline-h{re.match('[0-9]+', number)[0]}"]
    behind = [f"-{word}{'<number>' if kind in NUMBERS else ''}" for word, kind in kinds.items()]
    return (
        "expected baseline, baseline-h<heads of a layer>, random-<N>, random-<P>%, impt-<N> or "
        f"impt-<P>%, impt with any of {', '.join(behind)}, random with "
        "-rest<number> or -after<number>, the others with -d<number> (numbers of at most 4 "
        "decimals), "
        f"found {text[:100]!r}; {nearest(text, forms)}"
    )


def _pruned_forms(text: str) -> str:
    """What a name may be, and which is nearest to this one, with its own λ."""
    number = r"(\d+(?:\.\d+)?(?:e-?\d{1,2})?)"
    found = re.search(f"-l{number}", text) or re.search(f"-{number}", text)
    start = re.search(r"-from-.+", text)
    tail = f"-l{decimal(float(found[1])) if found else '0.01'}{start[0] if start else ''}"
    plain = [f"gates-{scope}{tail}" for scope in SCOPES]
    forms = [*plain, *(f"{word}-{name}" for word in AS_GATES.values() for name in plain)]
    count = re.search(r"-k?(\d+)", text)
    kept = f"-k{count[1] if count else 8}{start[0] if start else ''}"
    forms += [f"subset-{scope}{kept}" for scope in SCOPES]
    return (
        "expected gates-<scope>-l<λ>, with -from-<run> or -from-none at its end or not, or "
        "scratch-, ranked- or drawn- before it; or subset-<scope>-k<heads that stay>; "
        f"<scope> is {' or '.join(SCOPES)}, <λ> a plain decimal number of at "
        f"most 9 decimals; found {text[:100]!r}; {nearest(text, forms)}"
    )


def decimal(number: float) -> str:
    """A number in plain decimal digits, at most 9 of them behind the point."""
    return f"{number:.9f}".rstrip("0").rstrip(".")
