"""Fetch all files of one corpus, checked by SHA-256, and write their manifest.

Files are taken from the mirror folder that HEADCOUNT_MIRROR names, if it is set, else from the
corpus's URL. A file of your own is copied from its path.
"""

from headcount.base.command import MANIFEST, Flags, script
from headcount.data.fetching.download import fetch_corpus


@script("--corpus", "--entry", MANIFEST)
def main(args: Flags) -> None:
    fetch_corpus(args.corpus, args.entry, args.out.parent)
