"""Fine-tune a Hugging Face model on labelled sentence pairs, and write weights and tokeniser."""

from headcount.base.command import HUGGING_FACE, Flags, path, script
from headcount.base.settings.pretrained import FineTuningSettings
from headcount.data.entailment import read_pairs
from headcount.data.fetching.models import check_record
from headcount.data.lines import FoundText
from headcount.model.machine import use_threads
from headcount.training.training_run import Session
from headcount_hf.classifiers.fine_tuning import fine_tune_classifier
from headcount_hf.pretrained.library import input_files

TRAIN = path("--train", "labelled pairs, in a format of MultiNLI")


@script("--model", "--seed", "--state", TRAIN, folder="folder of the run")
def main(args: Flags, fine_tuning: FineTuningSettings) -> None:
    use_threads(fine_tuning.threads)
    check_record(args.model)
    origin = args.origin(args.train, input_files(args.model), packages=HUGGING_FACE)
    pairs = read_pairs(FoundText(args.train))
    session = Session(fine_tuning, args.seed, origin, args.state, 0)
    fine_tune_classifier(args.model, pairs, session, args.out)
