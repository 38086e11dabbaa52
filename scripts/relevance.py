"""Measure how relevant every head of one model is to its predictions: relevance propagation."""

from headcount.base import command
from headcount.base.folders import RELEVANCE
from headcount.base.results import provenance
from headcount.base.settings.flags import read_flags
from headcount.base.settings.lrp import LrpSettings
from headcount.heads.relevance_run import write_relevance
from headcount.model.machine import use_threads
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder


def main() -> None:
    """Read the flags and write the relevance as CSV, and a JSON beside it."""
    parser = command.parser(__doc__, "--model", "--bpe", out="CSV to write")
    args, settings = read_flags(parser, LrpSettings)
    use_threads(settings.threads)
    model, pair = ModelFolder(args.model), PairFolder(args.bpe)
    files = [*model.files, *pair.files(RELEVANCE)]
    origin = provenance("scripts/relevance.py", {"lrp": settings}, None, files)
    write_relevance(model, pair, settings, args.out, origin)


if __name__ == "__main__":
    command.run(main)
