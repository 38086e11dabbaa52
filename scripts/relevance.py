"""Measure how relevant every head of one model is to its predictions: relevance propagation."""

from headcount.base import command
from headcount.base.folders import RELEVANCE
from headcount.base.settings.flags import read_flags
from headcount.base.settings.importance import LrpSettings
from headcount.heads.relevance import write_relevance
from headcount.store.model_folder import open_model


def main() -> None:
    """Read the flags and write the relevance as CSV, and a JSON beside it."""
    parser = command.parser(__doc__, "--model", "--bpe", out="CSV to write")
    args, settings = read_flags(parser, LrpSettings)
    model, pair = open_model(args, settings.threads)
    files = [*model.files, *pair.files(RELEVANCE)]
    origin = command.provenance("scripts/relevance.py", {"lrp": settings}, None, files)
    write_relevance(model, pair, settings, args.out, origin)


if __name__ == "__main__":
    command.run(main)
