"""Names of corpora, files, languages and pairs, and the nearest known name."""

import difflib
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, NamedTuple

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


class Pair(NamedTuple):
    """Corpus, source language, target language; as text `<corpus>.<src>-<tgt>`."""

    corpus: str
    src: str
    tgt: str

    def __str__(self) -> str:
        return f"{self.corpus}.{self.src}-{self.tgt}"


def parse_pair(text: str) -> Pair:
    """Return the pair named by `<corpus>.<src>-<tgt>`, as in multi30k.en-de. Raises UserError."""
    match = re.fullmatch(rf"({NAME})\.({LANGUAGE})-({LANGUAGE})", text)
    if not match or match[2] == match[3]:
        form = "<corpus>.<source>-<target> as in multi30k.en-de"
        raise UserError(f"expected {form}, found {text[:100]!r}")
    return Pair(*match.groups())


def require(name: str, known: Collection[str], lack: str) -> None:
    """Raise UserError with `lack` and the nearest known name, unless a name is known."""
    if name not in known:
        raise UserError(f"{lack}; {nearest(name, known)}")


def nearest(name: str, known: Collection[str]) -> str:
    """Return 'nearest: peak_lr' if a known name is close, else 'known: ' and all names."""
    close = _closest(name, known)
    return f"nearest: {close}" if close else f"known: {', '.join(known) or 'none'}"


def _closest(name: str, known: Iterable[str]) -> str:
    names = {one.lower(): one for one in known}
    close = difflib.get_close_matches(name.lower(), names, n=1)
    return names[close[0]] if close else ""


def check_own_file(path: str, settings: str = "config/corpora.yaml") -> None:
    """Raise UserError, with the nearest path, unless a path in `settings` leads to a file."""
    file = Path(path)
    if not file.is_file():
        place = next(part for part in (file, *file.parents) if part.parent.is_dir())
        names = {other.name for other in place.parent.iterdir()} - {place.name}
        close = _closest(place.name, sorted(names))
        hint = f"nearest: {place.parent / close}; " if close else ""
        hint += f"correct the path in {settings}, or put the file there"
        raise UserError(f"{path}: expected a file of your own, found none; {hint}")
