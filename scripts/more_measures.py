"""Measure the heads of one model in more ways than importance, on the same sentence pairs."""

from headcount.base.command import Flags, script
from headcount.base.folders import with_text
from headcount.base.settings.heads import ImportanceSettings, MeasuresSettings
from headcount.heads.more_measures import write_measures
from headcount.store.model_folder import open_model


@script("--model", "--bpe", out="CSV to write")
def main(args: Flags, importance: ImportanceSettings, measures: MeasuresSettings) -> None:
    model, pair = open_model(args, importance.threads)
    origin = args.origin(model.files, pair.files(with_text(importance.data)))
    write_measures(model, pair, importance, measures, args.out, origin)
