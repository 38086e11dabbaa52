"""Measure how relevant every head of one model is to its predictions: relevance propagation."""

from headcount.base.command import Flags, script
from headcount.base.folders import RELEVANCE
from headcount.base.settings.heads import LrpSettings
from headcount.heads.relevance import write_relevance
from headcount.store.model_folder import open_model


@script("--model", "--bpe", out="CSV to write")
def main(args: Flags, lrp: LrpSettings) -> None:
    model, pair = open_model(args, lrp.threads)
    write_relevance(model, pair, lrp, args.out, args.origin(model.files, pair.files(RELEVANCE)))
