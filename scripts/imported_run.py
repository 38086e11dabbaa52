"""Write a pretrained model as a training run's folder, untrained, and check it.

Its scores are compared with those of the Hugging Face library, where that is installed.
"""

from pathlib import Path

from headcount.base import command
from headcount.base.folders import TRAINING
from headcount.base.settings.flags import read_flags
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.train import TrainSettings
from headcount.data.fetching.models import check_record
from headcount.model.machine import use_threads
from headcount.store.pair_folder import PairFolder
from headcount_hf.pretrained.imports import imported_files, write_imported_run


def main() -> None:
    """Read the flags, import the model, and write the folder of the run."""
    parser = command.parser(__doc__, "--bpe", folder="folder of the run")
    parser.add_argument("--pretrained", required=True, type=Path, help="folder of the model")
    args, model, train = read_flags(parser, ModelSettings, TrainSettings)
    use_threads(train.threads)
    check_record(args.pretrained)
    pair = PairFolder(args.bpe)
    inputs = [*imported_files(args.pretrained), *pair.files(TRAINING)]
    origin = command.provenance("scripts/imported_run.py", {"model": model}, None, inputs)
    write_imported_run(args.pretrained, pair, model, train, args.out, origin)


if __name__ == "__main__":
    command.run(main)
