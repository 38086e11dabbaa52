"""Score the translations of one run, for each test set: BLEU, chrF, tokenised BLEU, signatures."""

import sys
from pathlib import Path

from headcount.base import command
from headcount.base.files import write_json
from headcount.base.settings.names import parse_pair
from headcount.data.words import Tokeniser
from headcount.scoring.bleu import doubts, score_files


def main() -> None:
    """Read the flags and write the scores as JSON."""
    parser = command.parser(__doc__, "--seed", *command.WORDS, out="scores to write")
    parser.add_argument("--pair", required=True, help="pair, such as multi30k.en-de")
    parser.add_argument("--run", required=True, help="training variant, such as baseline")
    parser.add_argument("--tests", required=True, nargs="+", help="names of the test sets")
    for kind in ("translations", "references", "facts"):  # facts: those of the translations
        words = f"{kind}, one file per test set"
        parser.add_argument(f"--{kind}", required=True, nargs="+", type=Path, help=words)
    args = parser.parse_args()
    words = Tokeniser(parse_pair(args.pair).tgt, args.pretokenised, args.unsegmented_scripts)
    scores = score_files(args.tests, args.translations, args.references, args.facts, words)
    warnings = doubts(scores, args.translations, args.references)
    for each in warnings:
        print(f"warning: {each}", file=sys.stderr)
    found = {"scores": scores, "warnings": warnings} if warnings else {"scores": scores}
    inputs = [*args.translations, *args.references, *args.facts]
    head = {"pair": args.pair, "run": args.run, "seed": args.seed}
    origin = command.provenance("scripts/bleu.py", {}, args.seed, inputs)
    write_json(args.out, {**head, **found, "provenance": origin})


if __name__ == "__main__":
    command.run(main)
