"""Fetch a Hugging Face model of one commit, or copy one's own, with the SHA-256 of every file.

Needs the extra `bert`. Weights are taken as safetensors only, and no code.
"""

from headcount.base import command
from headcount.base.errors import UserError
from headcount.data.fetching.models import RECORD
from headcount_hf.classifiers.classifier_files import copy_classifier


def main() -> None:
    """Read the flags and fetch the model."""
    parser = command.parser(__doc__, out=f"<folder>/{RECORD} to write, beside the model's files")
    parser.add_argument("--model", required=True, help="a local folder, or a name on the hub")
    parser.add_argument("--revision", metavar="COMMIT", help="of a model on the hub, in full")
    args = parser.parse_args()
    if args.out.name != RECORD:
        raise UserError(f"--out: expected a file named {RECORD}, found {args.out}")
    copy_classifier(args.model, args.revision, args.out)


if __name__ == "__main__":
    command.run(main)
