"""Write a model as a folder that has all that it needs, for this project or for another program."""

from functools import partial
from pathlib import Path

from headcount.base.command import Flags, flag, path, script
from headcount.base.errors import UserError
from headcount.base.settings.decode import DecodeSettings
from headcount.deployment.export import Deployed
from headcount.store.model_folder import open_model
from headcount_hf.export.aligned import Aligned, export_whisper
from headcount_hf.export.export import CUT, FORMS, check_export, export_model
from headcount_hf.hooks.opened import is_hooked
from headcount_hf.pretrained.imports import imported_files
from headcount_hf.pretrained.library import input_files

ALIGNMENT = flag(
    "--alignment",
    "heads that align source and target: alignment.json, or addresses such as dec_enc.1.3",
    nargs="+",
    default=[],
)


@script(
    *("--model", "[--bpe]", "--mask"),
    flag("--to", "format of the model", choices=FORMS, default="ctranslate2"),
    path("[--pretrained]", "imported model, whose family and tokenizer are kept"),
    path("[--check]", "text to translate in both ways, a line each"),
    CUT,
    ALIGNMENT,
    folder="folder to write",
)
def main(args: Flags, decode: DecodeSettings) -> None:
    aligned = Aligned.read(args.alignment) if args.alignment else None
    if aligned and is_hooked(args.model):
        if args.to != "huggingface" or args.mask or args.check or args.cut_vocabulary:
            expected = "--to huggingface without --mask, --check and --cut-vocabulary"
            raise UserError(f"a Whisper: expected {expected}")
        files = input_files(args.model)
        print(export_whisper(args.model, aligned.heads, args.out, args.origin(files)))
        return
    if args.check and args.to == "headcount":
        raise UserError("--check: expected with --to ctranslate2 or huggingface, found headcount")
    folder, pair = open_model(args, decode.threads)
    deployed = Deployed.open(folder, pair, args.mask)
    if args.cut_vocabulary:
        deployed = deployed.with_pieces_of(*args.cut_vocabulary)
    masks = [file for file in map(Path, args.mask + args.alignment) if file.is_file()]
    theirs = imported_files(args.pretrained) if args.pretrained else []
    files = [*folder.files, *pair.files(), *masks, *theirs, *args.cut_vocabulary]
    origin = args.origin(files, decode=None, to=args.to)
    check = partial(check_export, deployed, text=args.check, settings=decode)
    given = (deployed, args.to, args.pretrained, args.out, origin)
    print(export_model(*given, check if args.check else None, aligned))
