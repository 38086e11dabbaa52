"""Learn byte-pair encoding from the training text of a pair; write codes, vocabularies and pieces.

The words come from Moses's tokeniser, unless the text is tokenised already.
"""

from itertools import product
from pathlib import Path

from headcount.base import command
from headcount.base.folders import SIDES
from headcount.base.settings.data import BpeSettings, SpellingSettings
from headcount.base.settings.flags import read_flags
from headcount.data.bpe import segment_corpus


def main() -> None:
    """Read the flags, segment the corpus and say how many merges were learnt."""
    parser = command.parser(__doc__, "--src-lang", "--tgt-lang", "--pretokenised", "--out-folder")
    for split, side in product(("train", "dev"), SIDES):
        words = f"cleaned {split} text, {side}"
        parser.add_argument(f"--{split}-{side}", required=True, type=Path, help=words)
    args, settings, spelt = read_flags(parser, BpeSettings, SpellingSettings)
    learnt = segment_corpus(
        (args.train_src, args.train_tgt),
        (args.dev_src, args.dev_tgt),
        (args.src_lang, args.tgt_lang),
        args.pretokenised,
        settings,
        args.out_folder,
        spelt,
    )
    print(f"merges learnt: {learnt['src']} (src), {learnt['tgt']} (tgt)")


if __name__ == "__main__":
    command.run(main)
