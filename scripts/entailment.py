"""Part labelled pairs for classifiers: to fine-tune them, to rank their heads, to score them.

Pairs on whose label people did not agree are left out. Raw files are read where their manifest
stands.
"""

from headcount.base.command import Flags, script
from headcount.base.settings.pretrained import EntailmentSettings
from headcount.data.entailment import write_parts


@script("--raw", out="folder to write to")
def main(args: Flags, parts: EntailmentSettings) -> None:
    write_parts(args.raw, parts, args.out)
