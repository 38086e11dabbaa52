"""Write a model as a folder that has all that it needs, for this project or for another program.

headcount: our own, with subwords beside the weights; masked heads are really gone. ctranslate2: one
number of heads for all layers of the encoder and one for the decoder, so that layers with fewer get
silent ones. huggingface: Marian, Pegasus, or the family that the model was imported from; all heads
that are gone are silent there, so that the folder is no smaller.
"""

from pathlib import Path

from headcount.base import command
from headcount.base.errors import UserError
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.flags import read_flags
from headcount.deployment.deployed import Deployed
from headcount.store.model_folder import open_model
from headcount_hf.export.export import (
    FORMS,
    Agreement,
    OpenExported,
    check_export,
    export_model,
    files_of,
)


def main() -> None:
    """Read the flags, write the folder, and print what it is, and how far it translates alike."""
    parser = command.parser(__doc__, "--model", "[--bpe]", "--mask", folder="folder to write")
    parser.add_argument("--to", choices=FORMS, default="ctranslate2", help="whose model it becomes")
    words = "folder that the model was imported from, whose family and tokenizer it keeps"
    parser.add_argument("--pretrained", type=Path, help=words)
    parser.add_argument("--check", type=Path, help="text to translate in both ways, a line each")
    args, decode = read_flags(parser, DecodeSettings)
    if args.check and args.to == "headcount":
        raise UserError("--check: expected with --to ctranslate2 or huggingface, found headcount")
    folder, pair = open_model(args, decode.threads)
    what = Deployed.open(folder, pair, args.mask)
    inputs = files_of(folder, pair, args.mask, args.pretrained)
    origin = command.provenance("scripts/export.py", {"to": args.to}, None, inputs)

    def check(open_exported: OpenExported) -> Agreement:
        return check_export(what.model, pair, open_exported, args.check, decode)

    given = (what, args.to, args.pretrained, args.out, origin)
    print(export_model(*given, check if args.check else None))


if __name__ == "__main__":
    command.run(main)
