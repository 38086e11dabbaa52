"""Fetch all files of one corpus, checked by SHA-256, and write their manifest.

Files are taken from the mirror folder that HEADCOUNT_MIRROR names, if it is set, else from the
corpus's URL. A file of your own is copied from its path.
"""

import json

from headcount.base import command
from headcount.base.errors import UserError
from headcount.data import manifest
from headcount.data.fetching.download import fetch_corpus


def main() -> None:
    """Read the flags and fetch the corpus."""
    parser = command.parser(__doc__, "--corpus", out="<folder>/manifest.json to write")
    parser.add_argument("--entry", required=True, help="its entry in config/corpora.yaml, as JSON")
    args = parser.parse_args()
    if args.out.name != manifest.NAME:
        raise UserError(f"--out: expected a file named {manifest.NAME}, found {args.out}")
    try:
        entry = json.loads(args.entry)
    except ValueError as fault:
        raise UserError(f"--entry: expected JSON, found {args.entry[:60]!r} ({fault})") from None
    fetch_corpus(args.corpus, entry, args.out.parent)


if __name__ == "__main__":
    command.run(main)
