"""Write the embedded corpus: text of all splits, trees of dev and test, and a manifest."""

from headcount.base.command import MANIFEST, Flags, script
from headcount.base.settings.data import SyntheticSettings
from headcount.data.synthetic.corpus import write_corpus


@script("--corpus", MANIFEST)
def main(args: Flags, size: SyntheticSettings) -> None:
    write_corpus(args.out.parent, args.corpus, size)
