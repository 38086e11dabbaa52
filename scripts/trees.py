"""Align a treebank with a pair's subwords: check its trees, cut its words, count the dropped."""

from headcount.base.command import Flags, flag, path, script
from headcount.base.folders import SEGMENTERS
from headcount.data.bpe import load_segmenters
from headcount.data.manifest import find_text
from headcount.data.trees import align_trees, read_trees, write_aligned


@script(
    "--bpe",
    path("--raw", "manifest of the treebank"),
    flag("--treebank", "its name there, such as ewt_dev"),
    out="<name>.jsonl to write",
)
def main(args: Flags) -> None:
    segmenter, _ = load_segmenters(args.bpe)
    text = find_text(args.raw, args.treebank, segmenter.language, trees=True)
    trees = read_trees(text)
    aligned, counts = align_trees(trees, segmenter)
    origin = args.origin(text.path, (args.bpe / name for name in SEGMENTERS))
    write_aligned(args.out, aligned, counts, {"provenance": origin})
