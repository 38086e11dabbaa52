"""Write a pretrained model, such as one of OPUS-MT or NLLB, as a model of ours.

Its folder has config.json, model.safetensors, and the files of its tokenizer.
"""

from headcount.base.command import Flags, script
from headcount.store.pair_folder import PairFolder
from headcount_hf.pretrained.imports import imported_files, write_imported


@script("--bpe", "--pretrained", folder="folder of our model")
def main(args: Flags) -> None:
    pair = PairFolder(args.bpe)
    origin = args.origin(imported_files(args.pretrained), pair.files())
    write_imported(args.pretrained, pair, args.out, origin)
