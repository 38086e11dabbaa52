"""Fine-tune a Hugging Face model on labelled sentence pairs; write its weights and tokeniser.

Needs the extra `bert`. Killed or stopped, the same command goes on after the last whole epoch.
"""

from pathlib import Path

from headcount.base import command
from headcount.base.settings.flags import read_flags
from headcount.base.settings.pretrained import FineTuningSettings
from headcount.data.entailment import read_pairs
from headcount.model.machine import use_threads
from headcount_hf.classifiers.classifier_files import fetch_classifier
from headcount_hf.classifiers.fine_tuning import fine_tune_classifier
from headcount_hf.pretrained.library import input_files


def main() -> None:
    """Read the flags, fine-tune, and write the folder of the run."""
    parser = command.parser(__doc__, "--model", "--seed", "--state", folder="folder of the run")
    parser.add_argument("--train", required=True, type=Path, help="labelled pairs, MultiNLI's way")
    args, settings = read_flags(parser, FineTuningSettings)
    use_threads(settings.threads)
    start = fetch_classifier(str(args.model), None)
    inputs = [args.train, *input_files(start)]
    told = {"fine_tuning": settings}
    origin = command.provenance(
        "scripts/fine_tune_classifier.py", told, args.seed, inputs, packages=command.HUGGING_FACE
    )
    pairs = read_pairs(args.train)
    fine_tune_classifier(start, pairs, settings, args.seed, args.state, args.out, origin)


if __name__ == "__main__":
    command.run(main)
