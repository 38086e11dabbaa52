"""Measure how relevant every head of one model is to its predictions: relevance propagation."""

from pathlib import Path

from headcount.base import command
from headcount.base.folders import RELEVANCE
from headcount.base.results import provenance
from headcount.base.settings.flags import add_flags, from_flags
from headcount.base.settings.lrp import LrpSettings
from headcount.heads.relevance_run import write_relevance
from headcount.model.machine import use_threads
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder


def main() -> None:
    """Read the flags and write the relevance as CSV, and a JSON beside it."""
    parser = command.parser(__doc__)
    parser.add_argument("--model", required=True, type=Path, help="folder of the model")
    parser.add_argument("--bpe", required=True, type=Path, help="folder of the segmented pair")
    parser.add_argument("--out", required=True, type=Path, help="CSV to write")
    add_flags(parser, LrpSettings)
    args = parser.parse_args()
    settings = from_flags(args, LrpSettings)
    use_threads(settings.threads)
    model, pair = ModelFolder(args.model), PairFolder(args.bpe)
    files = [*model.files, *pair.files(RELEVANCE)]
    origin = provenance("scripts/relevance.py", {"lrp": settings.model_dump()}, None, files)
    write_relevance(model, pair, settings, args.out, origin)


if __name__ == "__main__":
    command.run(main)
