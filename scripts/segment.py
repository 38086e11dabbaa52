"""Cut the text of a pair into the pieces of a pretrained Marian model, such as one of OPUS-MT.

What is written takes the place of what scripts/bpe.py writes for a model that is trained here.
"""

from itertools import product
from pathlib import Path

from headcount.base import command
from headcount.base.folders import SIDES
from headcount.pretrained.marian import segment_pretrained


def main() -> None:
    """Read the flags, and segment the text."""
    parser = command.parser(__doc__, "--src-lang", "--tgt-lang")
    parser.add_argument("--pretrained", required=True, type=Path, help="folder of the model")
    for split, side in product(("train", "dev"), SIDES):
        words = f"cleaned {split} text, {side}"
        parser.add_argument(f"--{split}-{side}", required=True, type=Path, help=words)
    parser.add_argument("--out-folder", required=True, type=Path, help="folder to write into")
    args = parser.parse_args()
    segment_pretrained(
        args.pretrained,
        (args.src_lang, args.tgt_lang),
        (args.train_src, args.train_tgt),
        (args.dev_src, args.dev_tgt),
        args.out_folder,
    )


if __name__ == "__main__":
    command.run(main)
