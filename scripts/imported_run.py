"""Write a pretrained model as a training run's folder, untrained, and check it.

Its scores are compared with the scores of the Hugging Face library, if that is installed.
"""

from headcount.base.command import Flags, script
from headcount.base.folders import TRAINING
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.train import TrainSettings
from headcount.data.fetching.models import check_record
from headcount.model.machine import use_threads
from headcount.store.pair_folder import PairFolder
from headcount_hf.pretrained.imports import imported_files, write_imported_run


@script("--bpe", "--pretrained", folder="folder of the run")
def main(args: Flags, model: ModelSettings, train: TrainSettings) -> None:
    use_threads(train.threads)
    check_record(args.pretrained)
    pair = PairFolder(args.bpe)
    origin = args.origin(imported_files(args.pretrained), pair.files(TRAINING), train=None)
    write_imported_run(args.pretrained, pair, model, train, args.out, origin)
