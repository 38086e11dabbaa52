"""Short spellings of runs, as on command lines, in lists and in paths: `impt-6-p0.5`.

Each is read into the mapping that it stands for; the classes in `runs.py` check what that says.
Training runs: `baseline`; `random-<N>`; `impt-<N>`, with suffixes. Pruned runs:
`gates-<scope>-l<λ>`, with `scratch-`, `ranked-` or `drawn-` before it, and `-from-<run>` or
`-from-none` behind.
"""

import re
from typing import Any

from headcount.base.addresses import SCOPES
from headcount.base.settings.names import nearest

TRAINING_WORDS = {"random": "random", "importance": "impt"}
PRUNED_WORDS = {"gates": "gates", "scratch": "scratch", "importance": "ranked", "random": "drawn"}
"""What short names and tables call a method."""

SUFFIXES = {
    "p": ("probability", float),
    "signed": ("signed", bool),
    "batch": ("unit", str),
    "position": ("unit", str),
    "ema": ("decay", float),
}
"""What may stand behind `impt-<N>`, in this order: letters, the key that they set, its type.

A number follows the letters of a float; those of a text are its value.
"""

_TRAINING = re.compile(r"(random|impt)-(-?\d{1,9}(?:\.\d{1,9})?%|-?\d{1,9})((?:-[a-z][^-]*)*)")
_SUFFIX = re.compile(r"([a-z_]+)(\d{1,9}(?:\.\d{1,4})?)?")
_PRUNED = re.compile(r"(?:([a-z]+)-)?gates-([A-Za-z_]+)-l(-?\d{1,6}(?:\.\d{1,9})?)(?:-from-(.+))?")


def read_training_name(text: str) -> dict[str, Any]:
    """The mapping that the short name of a training run stands for.

    Raises ValueError saying what is expected, with the nearest name that would do.
    """
    if text == "baseline":
        return {"method": "baseline"}
    found = _TRAINING.fullmatch(text)
    if not found:
        raise ValueError(_training_forms(text))
    word, masked, behind = found.groups()
    if behind and word != "impt":
        plain = text.removesuffix(behind)
        raise ValueError(f"only impt takes suffixes, found {text[:100]!r}; nearest: {plain}")
    said = {"share": masked} if masked.endswith("%") else {"heads": int(masked)}
    said["method"] = next(name for name, known in TRAINING_WORDS.items() if known == word)
    for suffix in behind.split("-")[1:]:
        key, value = _read_suffix(text, suffix)
        if key in said:
            raise ValueError(
                f"expected {key} once, but -{suffix} sets it again in {text[:100]!r}; remove one"
            )
        said[key] = value
    return said


def _read_suffix(text: str, suffix: str) -> tuple[str, Any]:
    """Key and value of what stands behind `impt-<N>`."""
    found = _SUFFIX.fullmatch(suffix)
    letters, number = found.groups() if found else ("", None)
    key, kind = SUFFIXES.get(letters, ("", None))
    if not key or (kind is float) != (number is not None):
        raise ValueError(_training_forms(text))
    return key, float(number) if number else kind(letters)


def read_pruned_name(text: str) -> dict[str, Any]:
    """The mapping that the short name of a pruned run stands for; `from` keeps its short name.

    Raises ValueError saying what is expected, with the nearest name that would do.
    """
    found = _PRUNED.fullmatch(text)
    methods = {word: method for method, word in PRUNED_WORDS.items()}
    if not found or found[1] not in (None, *list(methods)[1:]):
        raise ValueError(_pruned_forms(text))
    word, scope, lambda_, start = found.groups()
    said = {"method": methods[word or "gates"], "scope": scope, "lambda": float(lambda_)}
    return said if start is None else {**said, "from": start}


def _training_forms(text: str) -> str:
    """What a name may be, and which is nearest to this one, with its own numbers."""
    number = [*re.findall(r"\d+(?:\.\d+)?%|\d+", text), "6"][0]
    numbered = {letters: kind is float for letters, (_, kind) in SUFFIXES.items()}
    forms = ["baseline", f"random-{number}", f"impt-{number}"]
    forms += [f"impt-{number}-{word}{'0.5' if n else ''}" for word, n in numbered.items()]
    behind = ", ".join(f"-{word}{'<number>' if n else ''}" for word, n in numbered.items())
    return (
        "expected baseline, random-<N>, random-<P>%, impt-<N> or impt-<P>%, impt with any of "
        f"{behind} (numbers of at most 4 decimals), found {text[:100]!r}; {nearest(text, forms)}"
    )


def _pruned_forms(text: str) -> str:
    """What a name may be, and which is nearest to this one, with its own λ."""
    number = r"(\d+(?:\.\d+)?(?:e-?\d{1,2})?)"
    found = re.search(f"-l{number}", text) or re.search(f"-{number}", text)
    start = re.search(r"-from-.+", text)
    tail = f"-l{decimal(float(found[1])) if found else '0.01'}{start[0] if start else ''}"
    plain = [f"gates-{scope}{tail}" for scope in SCOPES]
    forms = [*plain, *(f"{w}-{name}" for w in ("scratch", "ranked", "drawn") for name in plain)]
    return (
        "expected gates-<scope>-l<λ>, with -from-<run> or -from-none at its end or not, or "
        "scratch-, ranked- or drawn- before it; "
        f"<scope> is {' or '.join(SCOPES)}, <λ> a plain decimal number of at "
        f"most 9 decimals; found {text[:100]!r}; {nearest(text, forms)}"
    )


def decimal(number: float) -> str:
    """A number in plain decimal digits, at most 9 of them behind the point."""
    return f"{number:.9f}".rstrip("0").rstrip(".")
