"""Write the embedded corpus: text of all splits, trees of dev and test, and a manifest."""

from pathlib import Path

from headcount.base.command import parser, run
from headcount.base.errors import UserError
from headcount.base.files import write_json
from headcount.base.settings.flags import add_flags, from_flags
from headcount.base.settings.synthetic import SyntheticSettings
from headcount.data.synthetic.corpus import manifest, write_corpus


def main() -> None:
    """Read the flags and write the corpus into the folder of the manifest."""
    flags = parser(__doc__)
    flags.add_argument("--corpus", required=True, help="the corpus's name in the manifest")
    flags.add_argument("--out", type=Path, required=True, help="<folder>/manifest.json")
    add_flags(flags, SyntheticSettings)
    options = flags.parse_args()
    size = from_flags(options, SyntheticSettings)
    if options.out.name != "manifest.json":
        raise UserError(f"--out must name a manifest.json, found {options.out}")
    folder = options.out.parent
    write_corpus(folder, size.seed, size.train_pairs, size.dev_pairs, size.test_pairs)
    # Last: until it is written, the checksums of an older manifest do not fit the new files.
    write_json(options.out, manifest(folder, options.corpus))


if __name__ == "__main__":
    run(main)
