"""Write a model as a folder that has all that it needs, for this project or for another program."""

from functools import partial
from pathlib import Path

from headcount.base.command import Flags, flag, path, script
from headcount.base.errors import UserError
from headcount.base.settings.decode import DecodeSettings
from headcount.deployment.export import Deployed
from headcount.store.model_folder import open_model
from headcount_hf.export.export import FORMS, check_export, export_model
from headcount_hf.pretrained.imports import imported_files


@script(
    *("--model", "[--bpe]", "--mask"),
    flag("--to", "format of the model", choices=FORMS, default="ctranslate2"),
    path("[--pretrained]", "imported model, whose family and tokenizer are kept"),
    path("[--check]", "text to translate in both ways, a line each"),
    folder="folder to write",
)
def main(args: Flags, decode: DecodeSettings) -> None:
    if args.check and args.to == "headcount":
        raise UserError("--check: expected with --to ctranslate2 or huggingface, found headcount")
    folder, pair = open_model(args, decode.threads)
    deployed = Deployed.open(folder, pair, args.mask)
    masks = [file for file in map(Path, args.mask) if file.is_file()]
    theirs = imported_files(args.pretrained) if args.pretrained else []
    files = [*folder.files, *pair.files(), *masks, *theirs]
    origin = args.origin(files, decode=None, to=args.to)
    check = partial(check_export, deployed, text=args.check, settings=decode)
    given = (deployed, args.to, args.pretrained, args.out, origin)
    print(export_model(*given, check if args.check else None))
