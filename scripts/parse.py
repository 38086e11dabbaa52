"""Predict dependency trees of your own text with stanza (extra `parse`), for the roles of heads."""

from pathlib import Path

from headcount.base.command import WORDS, Flags, flag, path, script
from headcount.data.parsing import parse_text
from headcount.data.words import Tokeniser


@script(
    *("--source", *WORDS),
    flag("--language", "such as en"),
    path("--models", "folder of stanza's models", default=Path("data/stanza")),
    out="<name>.conllu to write",
)
def main(args: Flags) -> None:
    facts = {name: vars(args)[name] for name in ("language", "pretokenised", "unsegmented_scripts")}
    words = Tokeniser(args.language, args.pretokenised, args.unsegmented_scripts)
    origin = args.origin(args.source, packages=("stanza",), **facts)
    parse_text(args.source, words, args.models, args.out, origin)
