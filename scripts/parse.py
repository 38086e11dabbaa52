"""Predict dependency trees of your own text with stanza, for the syntactic test of heads.

Needs the extra: pip install -e '.[parse]'. Name the result in config/corpora.yaml, under `trees`.
"""

from pathlib import Path

from headcount.base import command
from headcount.data.parsing import parse_text
from headcount.data.words import Tokeniser


def main() -> None:
    """Read the flags and write the trees as CoNLL-U, and a JSON beside them."""
    parser = command.parser(__doc__, "--source", *command.WORDS, out="<name>.conllu to write")
    parser.add_argument("--language", required=True, help="such as en")
    parser.add_argument("--models", default=Path("data/stanza"), type=Path, help="models' folder")
    args = parser.parse_args()
    shown = {name: vars(args)[name] for name in ("language", "pretokenised", "unsegmented_scripts")}
    packages = ("stanza",)
    origin = command.provenance("scripts/parse.py", shown, None, [args.source], packages=packages)
    words = Tokeniser(args.language, args.pretokenised, args.unsegmented_scripts)
    parse_text(args.source, words, args.models, args.out, origin)


if __name__ == "__main__":
    command.run(main)
