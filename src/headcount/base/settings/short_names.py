"""Short spellings of runs, as on command lines, in lists and in paths: `impt-6-p0.5`.

Each is read into the mapping that it stands for; the classes in `runs.py` check what that says.
Training runs: `baseline`; `random-<N>`; `impt-<N>`, with suffixes. Pruned runs:
`gates-<scope>-l<λ>`, with `scratch-`, `ranked-` or `drawn-` before it, and `-from-<run>` behind.
"""

import re
from typing import Any, Literal

from headcount.base.settings.nearest import nearest

TRAINING_WORDS = {"random": "random", "importance": "impt"}
PRUNED_WORDS = {"gates": "gates", "scratch": "scratch", "importance": "ranked", "random": "drawn"}
"""What short names and tables call a method."""

SCOPES = ("enc_self", "all")

_TRAINING = re.compile(r"(random|impt)-(-?\d{1,9}(?:\.\d{1,9})?%|-?\d{1,9})((?:-[a-z][^-]*)*)")
_SUFFIX = re.compile(r"(p|ema)(\d{1,9}(?:\.\d{1,4})?)|(signed|batch|position)")
_PRUNED = re.compile(r"(?:([a-z]+)-)?gates-([A-Za-z_]+)-l(-?\d{1,6}(?:\.\d{1,9})?)(?:-from-(.+))?")


def spelled_out(text: str, kind: Literal["training", "pruned"]) -> dict[str, Any]:
    """The mapping that a short name of a run of this kind stands for.

    Raises ValueError saying what is expected, with the nearest name that would do.
    """
    return _training(text) if kind == "training" else _pruned(text)


def _training(text: str) -> dict[str, Any]:
    if text == "baseline":
        return {"method": "baseline"}
    found = _TRAINING.fullmatch(text)
    if not found:
        raise ValueError(_training_forms(text))
    word, masked, suffixes = found.groups()
    if suffixes and word != "impt":
        plain = text.removesuffix(suffixes)
        raise ValueError(f"run {text[:100]!r}: only impt takes suffixes; nearest: {plain}")
    count = {"share": masked} if masked.endswith("%") else {"heads": int(masked)}
    method = next(name for name, known in TRAINING_WORDS.items() if known == word)
    return {"method": method, **count, **_variant(text, suffixes)}


def _variant(text: str, suffixes: str) -> dict[str, Any]:
    """What the suffixes of `impt` say."""
    said: dict[str, Any] = {}
    for suffix in suffixes.split("-")[1:]:
        found = _SUFFIX.fullmatch(suffix)
        if not found:
            raise ValueError(_training_forms(text))
        short, number, unit = found.groups()
        key = {"p": "probability", "ema": "decay", None: "unit"}[short]
        if key in said:
            raise ValueError(
                f"run {text[:100]!r}: -{unit or short} stands twice, or beside another of its kind "
                "(-signed, -batch and -position are of one); each may come once"
            )
        said[key] = unit or float(number)
    if said.get("unit") == "signed":
        del said["unit"]
        said["signed"] = True
    return said


def _pruned(text: str) -> dict[str, Any]:
    found = _PRUNED.fullmatch(text)
    methods = {word: method for method, word in PRUNED_WORDS.items()}
    if not found or found[1] not in (None, *list(methods)[1:]):
        raise ValueError(_pruned_forms(text))
    word, scope, price, start = found.groups()
    said = {"method": methods[word or "gates"], "scope": scope, "lambda": float(price)}
    return said if start is None else {**said, "from": start}


def _training_forms(text: str) -> str:
    """What a name may be, and which is nearest to this one, with its own numbers."""
    number = [*re.findall(r"\d+(?:\.\d+)?%|\d+", text), "6"][0]
    suffixes = ("p0.5", "signed", "batch", "position", "ema0.9")
    forms = ["baseline", f"random-{number}", f"impt-{number}"]
    forms += [f"impt-{number}-{suffix}" for suffix in suffixes]
    return (
        "expected baseline, random-<N>, random-<P>%, impt-<N> or impt-<P>%, impt with any of "
        "-p<0 to 1>, -ema<0 to 1> (at most 4 decimals) and one of -signed, -batch and -position, "
        f"found {text[:100]!r}; {nearest(text, forms)}"
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
        "expected gates-<scope>-l<λ>, with -from-<run> at its end or not, or scratch-, ranked- or "
        f"drawn- before it; <scope> is {' or '.join(SCOPES)}, <λ> a plain decimal number of at "
        f"most 9 decimals; found {text[:100]!r}; {nearest(text, forms)}"
    )


def decimal(number: float) -> str:
    """A number in plain decimal digits, at most 9 of them behind the point."""
    return f"{number:.9f}".rstrip("0").rstrip(".")
