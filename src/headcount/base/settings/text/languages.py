"""Codes of languages, and languages whose words sacreBLEU cannot find alone."""

import re
from pathlib import Path

import yaml

SCORED_BY_EXTRA = ("ja", "ko")
"""Target languages whose words sacreBLEU finds by a package of the project's extra of that name."""
SCORED_BY_CHARACTERS = ("th", "lo", "km", "my", "bo")
"""Target languages that are written without spaces, and whose words sacreBLEU does not find."""

_REGION = re.compile(r"[A-Z]{2}|[A-Z][a-z]{3}(_[A-Z]{2})?|\d{3}|cn|tw|hk|hans|hant|jp|kr|us|gb|br")
_CODES = yaml.load(Path(__file__).with_suffix(".yaml").read_bytes(), yaml.CSafeLoader)
_TWO = {code: two for two, codes in _CODES.items() for code in codes}


def two_letters(language: str) -> str:
    """Return the two letters of a known language, or another name in lower case.

    `zh` for `zh_TW`, `zh_Hant`, `ZH` and `zho`; `my_own` for `my_own`.
    """
    base, mark, region = language.partition("_")
    name = base.lower() if not mark or _REGION.fullmatch(region) else language.lower()
    return _TWO.get(name, name)


def contradict(first: str, second: str) -> bool:
    """Return whether two names belong to two known languages, whatever their regions are."""
    codes = {two_letters(name.replace("-", "_")) for name in (first, second)}
    return len(codes) == 2 and codes <= {*_CODES}
