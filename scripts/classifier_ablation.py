"""Remove heads of a Hugging Face classifier of sentence pairs: one by one, all but one, in steps.

Needs the extra `bert`. Data: MultiNLI's .tsv, .txt or .jsonl files.
"""

from pathlib import Path

from headcount.ablation.ablation import DEV
from headcount.base import command
from headcount.base.settings.ablation import ClassifierSettings
from headcount.base.settings.flags import read_flags
from headcount.model.machine import use_threads
from headcount_hf.classifiers.classifier import Classifier, write_classifier_ablation
from headcount_hf.classifiers.classifier_files import fetch_classifier
from headcount_hf.pretrained.library import input_files


def main() -> None:
    """Read the flags and write accuracy under every mask as CSV, and JSON beside it."""
    parser = command.parser(__doc__, out="folder to write to")
    parser.add_argument("--model", required=True, help="a local folder, or a name on the hub")
    parser.add_argument("--revision", metavar="COMMIT", help="of a model on the hub, in full")
    words = "names of the model's labels in the order of their numbers, spaces between; without "
    words += "them as the model has them"
    parser.add_argument("--labels", nargs="+", default=[], metavar="NAME", help=words)
    parser.add_argument("--dev", required=True, type=Path, help="pairs that choose and rank heads")
    parser.add_argument("--matched", required=True, type=Path, help="pairs that score")
    parser.add_argument("--mismatched", required=True, type=Path, help="pairs of other domains")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random orders")
    args, settings = read_flags(parser, ClassifierSettings)
    use_threads(settings.threads)
    files = {DEV: args.dev, "matched": args.matched, "mismatched": args.mismatched}
    folder = fetch_classifier(args.model, args.revision)
    shown = {"ablation": settings, "model": args.model, "labels": args.labels}
    shown["revision"] = args.revision
    inputs = [*files.values(), *input_files(folder)]
    origin = command.provenance(
        "scripts/classifier_ablation.py", shown, args.seed, inputs, packages=command.HUGGING_FACE
    )
    classifier = Classifier.load(folder, args.labels, settings.device)
    write_classifier_ablation(classifier, files, settings, args.seed, args.out, origin)


if __name__ == "__main__":
    command.run(main)
