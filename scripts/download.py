"""Fetch a corpus, or model.NAME or pretrained.NAME, under checksums, and write its manifest."""

from headcount.base.command import MANIFEST, Flags, script
from headcount.data.fetching.download import fetch_corpus
from headcount.data.fetching.models import fetch_model


@script("--corpus", "--entry", MANIFEST)
def main(args: Flags) -> None:
    fetch = fetch_model if "." in args.corpus else fetch_corpus
    fetch(args.corpus, args.entry, args.out.parent)
