"""Names of the kinds of attention for people; files say `enc_self`, `dec_self` and `dec_enc`."""

from collections.abc import Iterable

from headcount.base.addresses import NAMES

WORDS = {"enc_self": "encoder", "dec_self": "decoder", "dec_enc": "encoder–decoder"}
"""In legends, titles and cells."""

SHORT = {"enc_self": "enc", "dec_self": "dec", "dec_enc": "enc–dec"}
"""On axes, where room is small."""

SCOPES = {"all": "all kinds", **{kind: f"{words} heads" for kind, words in WORDS.items()}}
"""Heads that are pruned or masked, by the kinds that they are of."""


def explain_kinds(kinds: Iterable[str] = tuple(SHORT)) -> str:
    """A sentence for notes: what the short names of these kinds of attention stand for."""
    return f"{', '.join(f'{SHORT[kind]}: {NAMES[kind]}' for kind in kinds)}."


def kind_words(kind: str) -> str:
    """A kind in a cell of a table; what is none, such as `all`, stays as it is."""
    return WORDS.get(kind, kind)
