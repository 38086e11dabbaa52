"""Short names of runs, as in paths: `impt-6-p0.5`, `scratch-gates-all-l0.01-from-impt-6`.

`label` writes them. The readers are for people, who may type a name in `runs:` or after `--run`.
Programs read the settings in `run.json`.
"""

import re
from decimal import Decimal
from typing import Any

from headcount.base.settings.names import nearest

NONE = "none"
TRAINING_WORDS = {"baseline": "baseline", "random": "random", "importance": "impt"}
PRUNED_WORDS = {
    **{"gates": "gates", "scratch": "scratch", "importance": "ranked", "random": "drawn"},
    **{"subset": "subset"},
}
_METHODS = {w: method for each in (TRAINING_WORDS, PRUNED_WORDS) for method, w in each.items()}
# Letters before the value of each key of a training run, in the order of names.
_LETTERS = {
    **{"attention_heads": "h", "probability": "p", "signed": "signed", "unit": "", "decay": "ema"},
    **{"spare": "spare_", "rest": "rest", "held": "held", "after": "after", "dropout": "d"},
}
_TRAINING = re.compile(r"(baseline|random|impt)(?:-(\d+)|-([\d.]+%))?((?:-[a-z][\w.]*)*)")
_PRUNED = re.compile(r"(?:(scratch|ranked|drawn)-)?(gates)-(\w+)-l([\d.]+)|(subset)-(\w+)-k(\d+)")


def label(run: Any) -> str:
    """Return the name of a run in paths and tables."""
    if hasattr(run, "scope"):
        word = PRUNED_WORDS[run.method]
        size = f"k{run.heads}" if word == "subset" else f"l{_written(run.lambda_)}"
        parts = [word, *["gates"] * (word not in ("gates", "subset")), run.scope, size]
        start = NONE if run.init_from == NONE else label(run.init_from)
        return "-".join([*parts, *["from", start] * (start != "baseline")])
    amount = run.heads if run.share is None else run.share
    parts = [TRAINING_WORDS[run.method], *([] if amount is None else [str(amount)])]
    said = run.model_dump(exclude_defaults=True)
    for key in filter(said.__contains__, _LETTERS):
        parts.append(_LETTERS[key] + ("" if said[key] is True else _written(said[key])))
    return "-".join(parts)


def _written(value: float | str) -> str:
    """Return a value as names have it; numbers in plain decimal digits."""
    return value if isinstance(value, str) else f"{Decimal(repr(value)):f}".removesuffix(".0")


def read_training_name(text: str) -> dict[str, Any]:
    """Return the settings of the training run that a person named. Raises ValueError."""
    word, heads, share, rest = _match(_TRAINING, text, "random-6", "random-12.5%", "impt-6")
    settings: dict[str, Any] = {"method": _METHODS[word]}
    settings |= {"share": share} if share else {"heads": int(heads)} if heads else {}
    for part in rest.split("-")[1:]:
        letters, number = re.fullmatch(r"(\D*)(.*)", part).groups()
        key = next((key for key, before in _LETTERS.items() if before == letters), "")
        value = _number(number) if number else True
        if not key:
            key, value = "spare" if "spare_" in part else "unit", part.removeprefix("spare_")
        if key in settings:
            raise ValueError(f"expected {key} once, found {text!r}")
        settings[key] = value
    return settings


def read_pruned_name(text: str) -> dict[str, Any]:
    """Return the settings of the pruned run that a person named. Raises ValueError."""
    name, *start = text.split("-from-", 1)
    found = _match(_PRUNED, name, "gates-all-l0.01", "ranked-gates-all-l0.01", "subset-all-k8")
    word, gates, scope, lambda_, subset, subset_scope, heads = found
    settings = {"method": _METHODS[subset or word or gates]}
    settings |= {"scope": scope or subset_scope, **({"from": start[0]} if start else {})}
    return settings | ({"heads": int(heads)} if heads else {"lambda": _number(lambda_)})


def _match(pattern: re.Pattern[str], text: str, *forms: str) -> tuple[str, ...]:
    if found := pattern.fullmatch(text):
        return found.groups()
    hint = nearest(text, forms)
    raise ValueError(f"expected a run such as {forms[0]}, found {text[:100]!r}; {hint}")


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)
