"""Clean one split of a pair, filter it if it is `train`, and count cleaned and dropped lines."""

from headcount.base.command import Flags, flag, path, script
from headcount.base.settings.data import TextSettings
from headcount.base.settings.sources import Draw
from headcount.data.text import write_split

_DRAW = "draw so many of its pairs by this seed, before any filter; without it all are taken"
_HELD_OUT = "cleaned source files of dev and test sets, to find their lines in training"


@script(
    *("--raw", "--src-lang", "--tgt-lang"),
    flag("--split", "train, dev or the name of a test set"),
    path("--out-src", "source text to write"),
    path("--out-tgt", "target text to write"),
    path("--counts", "counts to write, as JSON"),
    flag("[--draw]", _DRAW, nargs=2, type=int, metavar=("PAIRS", "SEED")),
    path("--held-out", _HELD_OUT, nargs="*", default=[]),
)
def main(args: Flags, text: TextSettings) -> None:
    languages = (args.src_lang, args.tgt_lang)
    out = (args.out_src, args.out_tgt)
    draw = Draw(pairs=args.draw[0], seed=args.draw[1]) if args.draw else None
    write_split(args.raw, languages, args.split, text, args.held_out, out, args.counts, draw)
