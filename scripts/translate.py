"""Translate a text with a trained model by beam search; write detokenised lines."""

from pathlib import Path

from headcount.base import command
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.flags import read_flags
from headcount.search.translation import translate_file
from headcount.store.model_folder import open_model


def main() -> None:
    """Read the flags and translate one file."""
    parser = command.parser(__doc__, "--model", "--bpe", "--source", out="translations to write")
    parser.add_argument("--facts", required=True, type=Path, help="counts to write, as JSON")
    args, settings = read_flags(parser, DecodeSettings)
    model, pair = open_model(args, settings.threads)
    inputs = [*model.files, *pair.files(), args.source]
    origin = command.provenance("scripts/translate.py", {"decode": settings}, None, inputs)
    translate_file(model, pair, args.source, settings, args.out, args.facts, origin)


if __name__ == "__main__":
    command.run(main)
