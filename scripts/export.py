"""Write a model for CTranslate2, with heads masked or not; say how far both translate alike.

Silent heads are taken out. CTranslate2 has one number of heads for all layers of the encoder, and
one for the decoder: layers with fewer get silent heads, so that only heads missing in every layer
of a side make its model smaller.
"""

from pathlib import Path

from headcount.base import command
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.flags import read_flags
from headcount.deployment.export import check_export, export_model, load_masked
from headcount.store.model_folder import open_model


def main() -> None:
    """Read the flags, write the folder, and print how many translations are the same."""
    parser = command.parser(__doc__, "--model", "--bpe", out="folder to write")
    words = "gates in a heads.csv, or a text that lists silent heads"
    parser.add_argument("--mask", type=Path, help=words)
    parser.add_argument("--check", type=Path, help="text to translate in both ways, a line each")
    args, decode = read_flags(parser, DecodeSettings)
    folder, pair = open_model(args, decode.threads)
    files = [*folder.files, *pair.files(), *([args.mask] if args.mask else [])]
    origin = command.provenance("scripts/export.py", {}, None, files)
    model = load_masked(folder, args.mask)
    export_model(model, folder, pair, args.out, origin)
    if args.check:
        print(check_export(model, pair, args.out, args.check, decode))


if __name__ == "__main__":
    command.run(main)
