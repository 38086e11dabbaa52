"""Clean one split of a pair: two aligned text files, and the counts of what was met and dropped.

Only the split `train` is filtered. Raw files are read where their manifest stands.
"""

from pathlib import Path

from headcount.base import command
from headcount.base.settings.data import TextSettings
from headcount.base.settings.flags import read_flags
from headcount.base.settings.text.sources import Draw
from headcount.data.text import write_split


def main() -> None:
    """Read the flags and write one split."""
    parser = command.parser(__doc__, "--raw", "--src-lang", "--tgt-lang")
    parser.add_argument("--split", required=True, help="train, dev or the name of a test set")
    parser.add_argument("--out-src", required=True, type=Path, help="source text to write")
    parser.add_argument("--out-tgt", required=True, type=Path, help="target text to write")
    parser.add_argument("--counts", required=True, type=Path, help="counts to write, as JSON")
    words = "draw so many of its pairs by this seed, before any filter; without it all are taken"
    parser.add_argument("--draw", nargs=2, type=int, metavar=("PAIRS", "SEED"), help=words)
    words = "cleaned source files of dev and test sets, to find their lines in training"
    parser.add_argument("--held-out", nargs="*", default=[], type=Path, help=words)
    args, settings = read_flags(parser, TextSettings)
    languages = (args.src_lang, args.tgt_lang)
    out = (args.out_src, args.out_tgt)
    draw = Draw(pairs=args.draw[0], seed=args.draw[1]) if args.draw else None
    write_split(args.raw, languages, args.split, settings, args.held_out, out, args.counts, draw)


if __name__ == "__main__":
    command.run(main)
