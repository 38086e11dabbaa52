"""Names of corpora, files, languages and pairs, and the nearest known name."""

import difflib
import os
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, NamedTuple

import yaml
from pydantic import Field

from headcount.base.errors import UserError

NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"  # of a corpus or an experiment
LANGUAGE = r"[A-Za-z0-9][A-Za-z0-9_]{0,31}"  # no hyphen: `<source>-<target>` reads one way only
FILE = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}"  # of a file, a split or a treebank
SHA256 = "^[0-9a-f]{64}$"
NO_BRACES = r"^[^\n\r{}]+$"  # for paths: braces would be wildcards to the workflow
CorpusName = Annotated[str, Field(pattern=f"^{NAME}$")]
Language = Annotated[str, Field(pattern=f"^{LANGUAGE}$")]
FileName = Annotated[str, Field(pattern=f"^{FILE}$")]

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
    base, mark, behind = language.partition("_")
    name = base.lower() if not mark or _REGION.fullmatch(behind) else language.lower()
    return _TWO.get(name, name)


def contradict(first: str, second: str) -> bool:
    """Return whether two names are of two known languages, whatever their regions are."""
    found = {two_letters(name.replace("-", "_")) for name in (first, second)}
    return len(found) == 2 and found <= {*_CODES}


class Pair(NamedTuple):
    """Corpus, source language, target language; as text `<corpus>.<src>-<tgt>`."""

    corpus: str
    src: str
    tgt: str

    def __str__(self) -> str:
        return f"{self.corpus}.{self.src}-{self.tgt}"


def parse_pair(text: str) -> Pair:
    """Return the pair named by `<corpus>.<src>-<tgt>`, as in multi30k.en-de. Raises UserError."""
    found = re.fullmatch(rf"({NAME})\.({LANGUAGE})-({LANGUAGE})", text)
    if not found or found[2] == found[3]:
        form = "<corpus>.<source>-<target> as in multi30k.en-de"
        raise UserError(f"expected {form}, found {text[:100]!r}")
    return Pair(*found.groups())


def require(name: str, known: Collection[str], lack: str) -> None:
    """Raise UserError with `lack` and the nearest known name, unless a name is known."""
    if name not in known:
        raise UserError(f"{lack}; {nearest(name, known)}")


def nearest(name: str, known: Collection[str]) -> str:
    """Return 'nearest: peak_lr' where a known name is close, else 'known: ' and all of them."""
    close = closest(name, known)
    return f"nearest: {close}" if close else f"known: {', '.join(known) or 'none'}"


def closest(name: str, known: Iterable[str]) -> str:
    """Return the known name nearest to a name, ignoring case, or an empty text."""
    names = {one.lower(): one for one in known}
    close = difflib.get_close_matches(name.lower(), names, n=1)
    return names[close[0]] if close else ""


def check_own_file(path: str, settings: str = "config/corpora.yaml") -> None:
    """Raise UserError, with the nearest path, unless a path in `settings` leads to a file."""
    if os.path.isfile(path):
        return
    found = "a folder" if os.path.isdir(path) else "none"
    part = Path(path)
    while not os.path.isdir(part.parent):
        part = part.parent
    names = os.listdir(part.parent) if os.access(part.parent, os.R_OK) else []
    close = closest(part.name, (name for name in names if name != part.name))
    hint = f"; nearest: {part.parent / close}" if close else ""
    found += hint + f"; correct the path in {settings}, or put the file there"
    raise UserError(f"{path}: expected a file of your own, found {found}")
