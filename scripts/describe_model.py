"""Print what config/models.yaml and an experiment say of a pretrained model, to paste.

Sizes are read from its config.json; every file that is read has its SHA-256.
"""

from pathlib import Path

from headcount.base import command
from headcount.pretrained.describe import describe


def main() -> None:
    """Read the flag and print the lines."""
    parser = command.parser(__doc__)
    parser.add_argument("--pretrained", required=True, type=Path, help="folder of the model")
    args = parser.parse_args()
    print("\n".join(describe(args.pretrained)))


if __name__ == "__main__":
    command.run(main)
