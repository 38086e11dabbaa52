"""Print what config/models.yaml and an experiment say of a pretrained model, to paste.

Sizes are read from its config.json; every file that is read has its SHA-256. A model of the hub is
fetched into the folder first: the files of one commit, without code and pickles.
"""

from pathlib import Path

from headcount.base import command
from headcount.data.fetching.models import fetch_commit
from headcount_hf.pretrained.imports import describe


def main() -> None:
    """Read the flags and print the lines."""
    parser = command.parser(__doc__)
    parser.add_argument("--pretrained", required=True, type=Path, help="folder of the model")
    parser.add_argument("--hub", help="name on the hub, such as Helsinki-NLP/opus-mt-en-de")
    parser.add_argument("--revision", metavar="COMMIT", help="of a model on the hub, in full")
    args = parser.parse_args()
    if args.hub or args.revision:
        fetch_commit(args.hub, args.revision, args.pretrained)
    print("\n".join(describe(args.pretrained, args.hub, args.revision)))


if __name__ == "__main__":
    command.run(main)
