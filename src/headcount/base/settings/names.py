"""Names of corpora, files, languages and pairs, and the nearest known name."""

import difflib
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import AfterValidator

from headcount.base.errors import UserError


def fitting(pattern: str, words: str) -> Callable[[str], str]:
    """Return a check that raises ValueError unless all of a text fits a pattern."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"expected {words}, found {text[:100]!r}")
        return text

    return check


check_corpus_name = fitting(
    r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}",
    "a name of letters, digits, _ and -, the first a letter or digit (at most 64)",
)
"""The name of a corpus or an experiment."""
check_language = fitting(
    r"[A-Za-z0-9][A-Za-z0-9_]{0,31}",
    "a name of letters, digits and _, the first a letter or digit (at most 32)",
)
"""The name of a language; it has no hyphen, so that `<source>-<target>` reads one way only."""
check_file_name = fitting(
    r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}",
    "a name of letters, digits, . _ and -, the first neither . nor - (at most 128)",
)
"""The name of a file or a split."""

CorpusName = Annotated[str, AfterValidator(check_corpus_name)]
Language = Annotated[str, AfterValidator(check_language)]
FileName = Annotated[str, AfterValidator(check_file_name)]

SCORED_BY_EXTRA = ("ja", "ko")
"""Target languages whose words sacreBLEU finds by a package of the project's extra of that name."""
SCORED_BY_CHARACTERS = ("th", "lo", "km", "my", "bo")
"""Target languages that are written without spaces, and whose words sacreBLEU does not find."""

# By ISO 639-2 and 639-3. Left out are names of several languages, such as ms (Malay, Indonesian).
_LETTERS = """
af afr, am amh, ar ara, as asm, az aze, be bel, bg bul, bn ben, bo bod tib, br bre, bs bos,
ca cat, cs ces cze, cy cym wel, da dan, de deu ger, el ell gre, en eng, eo epo, es spa, et est,
eu eus baq, fa fas per, fi fin, fo fao, fr fra fre, fy fry, ga gle, gd gla, gl glg, gu guj,
ha hau, he heb, hi hin, hr hrv, ht hat, hu hun, hy hye arm, id ind, ig ibo, is isl ice, it ita,
ja jpn, jv jav, ka kat geo, kk kaz, km khm, kn kan, ko kor, ku kur, ky kir, la lat, lb ltz,
ln lin, lo lao, lt lit, lv lav, mg mlg, mi mri mao, mk mkd mac, ml mal, mn mon, mr mar, mt mlt,
my mya bur, ne nep, nl nld dut, no nor nob nno nb nn, oc oci, or ori, pa pan, pl pol, ps pus,
pt por, ro ron rum, ru rus, rw kin, sd snd, si sin, sk slk slo, sl slv, sn sna, so som,
sq sqi alb, sr srp, st sot, su sun, sv swe, sw swa, ta tam, te tel, tg tgk, th tha, tk tuk,
tl tgl, tn tsn, tr tur, tt tat, ug uig, uk ukr, ur urd, uz uzb, vi vie, wo wol, xh xho, yi yid,
yo yor, zh zho chi cmn, zu zul
"""
_REGION = re.compile(r"[A-Z]{2}|[A-Z][a-z]{3}(_[A-Z]{2})?|\d{3}|cn|tw|hk|hans|hant|jp|kr|us|gb|br")
_TWO = {code: two for two, *codes in map(str.split, _LETTERS.split(",")) for code in codes}
_KNOWN = {*_TWO.values()}


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
    return len(found) == 2 and found <= _KNOWN


class Pair(NamedTuple):
    """Corpus, source language, target language; as text `<corpus>.<src>-<tgt>`."""

    corpus: str
    src: str
    tgt: str

    def __str__(self) -> str:
        return f"{self.corpus}.{self.src}-{self.tgt}"


def parse_pair(text: str) -> Pair:
    """Return the pair named by `<corpus>.<src>-<tgt>`, as in multi30k.en-de. Raises UserError."""
    corpus, dot, languages = text.rpartition(".")
    src, hyphen, tgt = languages.partition("-")
    if not dot or not hyphen:
        raise UserError(f"expected <corpus>.<source>-<target> as in multi30k.en-de, found {text!r}")
    try:
        pair = Pair(check_corpus_name(corpus), check_language(src), check_language(tgt))
    except ValueError as fault:
        raise UserError(f"pair {text[:100]!r}: {fault}") from None
    if src == tgt:
        raise UserError(f"pair {text!r}: expected two languages, found {src!r} twice")
    return pair


def require(name: str, known: Iterable[str], lack: str) -> None:
    """Raise UserError with `lack` and the nearest known name, unless a name is known."""
    known = list(known)
    if name not in known:
        raise UserError(f"{lack}; {nearest(name, known)}")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return 'nearest: peak_lr' where a known name is close, else 'known: ' and all of them."""
    known = list(known)
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
    if os.path.islink(path):
        found = f"a link to {os.readlink(path)} that leads to no file"
    part = Path(path)
    while not os.path.isdir(part.parent):
        part = part.parent
    readable = os.access(part.parent, os.R_OK)
    others = [name for name in os.listdir(part.parent) if name != part.name] if readable else []
    close = closest(part.name, others)
    hint = f"; nearest: {part.parent / close}" if close else ""
    raise UserError(
        f"{path}: expected a file of your own, found {found}{hint}; correct the path in "
        f"{settings}, or put the file there"
    )
