"""Score the translations of one run, for each test set: BLEU, chrF, tokenised BLEU, signatures."""

import sys

from headcount.base.command import WORDS, Flags, flag, path, script
from headcount.base.files import write_json
from headcount.base.settings.section import parse_pair
from headcount.data.words import Tokeniser
from headcount.scoring.bleu import doubts, score_files


@script(
    *("--seed", *WORDS),
    flag("--pair", "pair, such as multi30k.en-de"),
    flag("--run", "training variant, such as baseline"),
    flag("--tests", "names of the test sets", nargs="+"),
    path("--translations", "translations, one file per test set", nargs="+"),
    path("--references", "references, one file per test set", nargs="+"),
    path("--facts", "JSON files beside the translations, one per test set", nargs="+"),
    out="scores to write",
)
def main(args: Flags) -> None:
    words = Tokeniser(parse_pair(args.pair).tgt, args.pretokenised, args.unsegmented_scripts)
    scores = score_files(args.tests, args.translations, args.references, args.facts, words)
    warnings = doubts(scores)
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    facts = {"pair": args.pair, "run": args.run, "seed": args.seed, "scores": scores}
    facts |= {"warnings": warnings} if warnings else {}
    origin = args.origin(args.translations, args.references, args.facts)
    write_json(args.out, {**facts, "provenance": origin})
