"""A pair: the corpus and the two languages of one translation task."""

from typing import NamedTuple

from headcount.base.errors import UserError
from headcount.base.settings.names import check_corpus_name, check_language

SCORED_BY_EXTRA = ("ja", "ko")
"""Target languages whose words sacreBLEU finds by a package that the project's extra of that name
installs."""


class Pair(NamedTuple):
    """Corpus, source language, target language; as text `<corpus>.<src>-<tgt>`."""

    corpus: str
    src: str
    tgt: str

    def __str__(self) -> str:
        return f"{self.corpus}.{self.src}-{self.tgt}"


def parse_pair(text: str) -> Pair:
    """The pair named by `<corpus>.<src>-<tgt>`, as in multi30k.en-de. Raises UserError."""
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
