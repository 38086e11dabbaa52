"""Translate a text with a trained model by beam search: plain lines in, detokenised lines out.

From standard input to standard output, as lines arrive; or from a file to a file.
"""

import sys
from pathlib import Path

from headcount.base import command
from headcount.base.errors import UserError
from headcount.base.settings.decode import TranslateSettings
from headcount.base.settings.flags import read_flags
from headcount.search.translation import translate_file, translate_stream
from headcount.store.model_folder import open_model
from headcount_hf.export.ctranslate2_model import open_search


def main() -> None:
    """Read the flags and translate."""
    parser = command.parser(__doc__, "--model", "[--bpe]", "--mask", "[--source]")
    parser.add_argument("--out", type=Path, help="translations of --source to write")
    parser.add_argument("--facts", type=Path, help="counts to write beside them, as JSON")
    args, settings = read_flags(parser, TranslateSettings)
    files = [each for each in (args.source, args.out, args.facts) if each]
    if len(files) not in (0, 3):
        raise UserError(
            "expected --source, --out and --facts together, from a file to a file, or none of "
            f"them, from standard input to standard output; found {len(files)} of them"
        )
    model, pair = open_model(args, settings.threads)
    search = open_search(model, pair, args.mask, settings)
    if not files:
        return translate_stream(search, sys.stdin.buffer, sys.stdout.buffer)
    masks = [path for path in map(Path, args.mask) if path.is_file()]
    inputs = [*model.files, *pair.files(), args.source, *masks]
    told = {"decode": settings, **({"mask": args.mask} if args.mask else {})}
    packages = () if settings.engine == "headcount" else ("ctranslate2",)
    origin = command.provenance("scripts/translate.py", told, None, inputs, packages=packages)
    translate_file(search, args.source, args.out, args.facts, origin)


if __name__ == "__main__":
    command.run(main)
