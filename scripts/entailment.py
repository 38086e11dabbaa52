"""Part labelled pairs for classifiers: to fine-tune them, to rank their heads, to score them."""

from headcount.base.command import Flags, script
from headcount.base.settings.pretrained import EntailmentSettings
from headcount.data.entailment import write_parts


@script("--raw", out="folder to write to")
def main(args: Flags, parts: EntailmentSettings) -> None:
    write_parts(args.raw, parts, args.out)
