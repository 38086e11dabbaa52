"""Write a pretrained model, such as one of OPUS-MT or NLLB, as a model of ours.

Its folder has config.json, model.safetensors, and the files of its tokenizer.
"""

from pathlib import Path

from headcount.base import command
from headcount.store.pair_folder import PairFolder
from headcount_hf.pretrained.imports import imported_files, write_imported


def main() -> None:
    """Read the flags, import the model, and write its folder."""
    parser = command.parser(__doc__, "--bpe", folder="folder of our model")
    parser.add_argument("--pretrained", required=True, type=Path, help="folder of the model")
    args = parser.parse_args()
    pair = PairFolder(args.bpe)
    inputs = [*imported_files(args.pretrained), *pair.files()]
    origin = command.provenance("scripts/import_model.py", {}, None, inputs)
    write_imported(args.pretrained, pair, args.out, origin)


if __name__ == "__main__":
    command.run(main)
