"""Align a treebank with a pair's subwords: check its trees, cut its words, count the dropped."""

from pathlib import Path

from headcount.base import command
from headcount.base.folders import SEGMENTERS
from headcount.data.bpe import load_segmenters
from headcount.data.manifest import find_text
from headcount.data.trees import align_trees, read_trees, write_aligned


def main() -> None:
    """Read the flags and write the aligned trees, their counts and their relative positions."""
    parser = command.parser(__doc__, "--bpe", out="<name>.jsonl to write")
    parser.add_argument("--raw", required=True, type=Path, help="manifest of the treebank")
    parser.add_argument("--treebank", required=True, help="its name there, such as ewt_dev")
    args = parser.parse_args()
    segmenter, _ = load_segmenters(args.bpe)
    found = find_text(args.raw, args.treebank, segmenter.language, trees=True)
    trees = read_trees(found.path, found.member, found.shown)
    aligned, counts = align_trees(trees, segmenter)
    files = [found.path, *(args.bpe / name for name in SEGMENTERS)]
    origin = command.provenance("scripts/trees.py", {}, None, files)
    write_aligned(args.out, aligned, counts, {"provenance": origin})


if __name__ == "__main__":
    command.run(main)
