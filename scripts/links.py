"""Cut the words of a test set as a pair's text was cut, and give them their links."""

from headcount.base.command import Flags, flag, path, script
from headcount.base.folders import SIDES
from headcount.data.bpe import load_segmenters
from headcount.data.word_links.links import find_links, linked_pairs, write_linked


@script(
    *("--bpe", "--text"),
    path("--raw", "manifest.json of the corpus, or a file of links"),
    flag("--test", "name of the test set"),
    out="<name>.jsonl to write",
)
def main(args: Flags) -> None:
    segmenters = load_segmenters(args.bpe)
    links = find_links(args.raw, args.test, *(side.language for side in segmenters))
    texts = tuple(args.text / f"{args.test}.{side}" for side in SIDES)
    write_linked(args.out, linked_pairs(links, texts, segmenters))
