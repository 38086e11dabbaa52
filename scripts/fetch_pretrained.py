"""Fetch the files of one translation model, checked by SHA-256, and write the record of them.

Files of the hub are taken from the mirror folder that HEADCOUNT_MIRROR names, if it is set. A
folder of your own is copied. Weights are taken as safetensors only, and no code.
"""

import json

from headcount.base import command
from headcount.base.errors import UserError
from headcount.data.fetching.models import RECORD, fetch_model


def main() -> None:
    """Read the flags and fetch the model."""
    parser = command.parser(__doc__, out=f"<folder>/{RECORD} to write, beside the model's files")
    parser.add_argument("--name", required=True, help="of the model in config/models.yaml")
    parser.add_argument("--entry", required=True, help="its origin and files there, as JSON")
    args = parser.parse_args()
    if args.out.name != RECORD:
        raise UserError(f"--out: expected a file named {RECORD}, found {args.out}")
    try:
        entry = json.loads(args.entry)
    except ValueError as fault:
        raise UserError(f"--entry: expected JSON, found {args.entry[:60]!r} ({fault})") from None
    fetch_model(args.name, entry, args.out.parent)


if __name__ == "__main__":
    command.run(main)
