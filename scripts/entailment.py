"""Part labelled pairs for classifiers: to fine-tune them, to rank their heads, to score them.

Pairs on whose label people did not agree are left out. Raw files are read where their manifest
stands.
"""

from headcount.base import command
from headcount.base.settings.flags import read_flags
from headcount.base.settings.pretrained import EntailmentSettings
from headcount.data.entailment import write_parts


def main() -> None:
    """Read the flags and write the parts, and how many pairs each has."""
    parser = command.parser(__doc__, "--raw", out="folder to write to")
    args, settings = read_flags(parser, EntailmentSettings)
    write_parts(args.raw, settings, args.out)


if __name__ == "__main__":
    command.run(main)
