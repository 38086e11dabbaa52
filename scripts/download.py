"""Fetch all files of a corpus, or of model.NAME or pretrained.NAME of Hugging Face's library.

Files are checked by SHA-256, and a manifest is written. They come from the mirror folder that
HEADCOUNT_MIRROR names, if it is set, else from the URL or the hub. Your own are copied.
"""

from headcount.base.command import MANIFEST, Flags, script
from headcount.data.fetching.download import fetch_corpus
from headcount.data.fetching.models import fetch_model


@script("--corpus", "--entry", MANIFEST)
def main(args: Flags) -> None:
    fetch = fetch_model if "." in args.corpus else fetch_corpus
    fetch(args.corpus, args.entry, args.out.parent)
