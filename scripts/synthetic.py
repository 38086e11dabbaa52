"""Write the embedded corpus: text of all splits, trees of dev and test, and a manifest."""

from headcount.base import command
from headcount.base.errors import UserError
from headcount.base.settings.data import SyntheticSettings
from headcount.base.settings.flags import read_flags
from headcount.data.synthetic.corpus import write_corpus


def main() -> None:
    """Read the flags and write the corpus into the folder of the manifest."""
    parser = command.parser(__doc__, "--corpus", out="<folder>/manifest.json")
    args, size = read_flags(parser, SyntheticSettings)
    if args.out.name != "manifest.json":
        raise UserError(f"--out must name a manifest.json, found {args.out}")
    write_corpus(args.out.parent, args.corpus, size)


if __name__ == "__main__":
    command.run(main)
