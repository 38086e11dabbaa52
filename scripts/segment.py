"""Cut the text of a pair into the pieces of a pretrained model, such as one of OPUS-MT or NLLB.

What is written takes the place of what scripts/bpe.py writes for a model that is trained here.
"""

from itertools import product
from pathlib import Path

from headcount.base import command
from headcount.base.folders import SIDES
from headcount.base.settings.data import LetterSettings
from headcount.base.settings.flags import read_flags
from headcount.data.fetching.models import check_record
from headcount_hf.pretrained.segment import segment_pretrained


def main() -> None:
    """Read the flags, and segment the text."""
    parser = command.parser(__doc__, "--src-lang", "--tgt-lang", "--out-folder")
    parser.add_argument("--pretrained", required=True, type=Path, help="folder of the model")
    for split, side in product(("train", "dev"), SIDES):
        words = f"cleaned {split} text, {side}"
        parser.add_argument(f"--{split}-{side}", required=True, type=Path, help=words)
    for side in SIDES:
        words = f"what the model calls the {side} language, such as deu_Latn; its own name if not"
        parser.add_argument(f"--{side}-code", help=words)
    args, spelt = read_flags(parser, LetterSettings)
    check_record(args.pretrained)
    segment_pretrained(
        args.pretrained,
        (args.src_lang, args.tgt_lang),
        (args.train_src, args.train_tgt),
        (args.dev_src, args.dev_tgt),
        args.out_folder,
        (args.src_code, args.tgt_code),
        spelt,
    )


if __name__ == "__main__":
    command.run(main)
