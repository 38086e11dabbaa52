"""Translate plain lines with a trained model: a file, or standard input as lines arrive."""

import sys
from pathlib import Path

from headcount.base.command import Flags, path, script
from headcount.base.errors import UserError
from headcount.base.settings.decode import TranslateSettings
from headcount.search.translation import translate_file, translate_stream
from headcount.store.model_folder import open_model
from headcount_hf.export.ctranslate2_search import open_search


@script(
    *("--model", "[--bpe]", "--mask", "[--source]"),
    path("[--out]", "translations of --source to write"),
    path("[--facts]", "counts to write beside them, as JSON"),
)
def main(args: Flags, decode: TranslateSettings) -> None:
    files = [file for file in (args.source, args.out, args.facts) if file]
    if len(files) not in (0, 3):
        expected = "all of --source, --out and --facts (a file to a file), or none (standard input)"
        raise UserError(f"expected {expected}, found {len(files)} of them")
    model, pair = open_model(args, decode.threads)
    search = open_search(model, pair, args.mask, decode)
    if not files:
        return translate_stream(search, sys.stdin.buffer, sys.stdout.buffer)
    masks = [file for file in map(Path, args.mask) if file.is_file()]
    packages = () if decode.engine == "headcount" else ("ctranslate2",)
    inputs = [*model.files, *pair.files(), args.source, *masks]
    origin = args.origin(inputs, packages=packages, mask=args.mask or None)
    translate_file(search, args.source, args.out, args.facts, origin)
