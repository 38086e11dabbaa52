"""Fine-tune a Hugging Face model on labelled sentence pairs, and write weights and tokeniser.

Needs the extra `bert`. Killed or stopped, the same command goes on after the last whole epoch.
"""

from headcount.base.command import HUGGING_FACE, Flags, path, script
from headcount.base.settings.pretrained import FineTuningSettings
from headcount.data.entailment import read_pairs
from headcount.data.fetching.models import check_record
from headcount.model.machine import use_threads
from headcount_hf.classifiers.fine_tuning import fine_tune_classifier
from headcount_hf.pretrained.library import input_files

TRAIN = path("--train", "labelled pairs, in a format of MultiNLI")


@script("--model", "--seed", "--state", TRAIN, folder="folder of the run")
def main(args: Flags, fine_tuning: FineTuningSettings) -> None:
    use_threads(fine_tuning.threads)
    check_record(args.model)
    origin = args.origin(args.train, input_files(args.model), packages=HUGGING_FACE)
    pairs = read_pairs(args.train)
    fine_tune_classifier(args.model, pairs, fine_tuning, args.seed, args.state, args.out, origin)
