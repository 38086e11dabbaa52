"""Remove heads of a classifier of sentence pairs: one by one, all but one, in steps."""

from headcount.ablation.masking import DEV
from headcount.base.command import HUGGING_FACE, Flags, flag, path, script
from headcount.base.settings.heads import ClassifierSettings
from headcount.data.fetching.models import check_record
from headcount.model.machine import use_threads
from headcount_hf.classifiers.classifier import Classifier, write_classifier_ablation
from headcount_hf.pretrained.library import input_files

_LABELS = "names of the model's labels in the order of their numbers; default: the model's own"


@script(
    "--model",
    flag("--labels", _LABELS, nargs="+", default=[], metavar="NAME"),
    path("--dev", "labelled pairs, as MultiNLI has them, to choose and rank heads"),
    path("--matched", "pairs that score"),
    path("--mismatched", "pairs of other domains"),
    flag("--seed", "seed of the random orders", type=int, default=1),
    out="folder to write to",
)
def main(args: Flags, ablation: ClassifierSettings) -> None:
    use_threads(ablation.threads)
    texts = {DEV: args.dev, "matched": args.matched, "mismatched": args.mismatched}
    check_record(args.model)
    files = [*texts.values(), *input_files(args.model)]
    origin = args.origin(files, packages=HUGGING_FACE, labels=args.labels)
    classifier = Classifier.load(args.model, args.labels, ablation.device)
    write_classifier_ablation(classifier, texts, ablation, args.seed, args.out, origin)
