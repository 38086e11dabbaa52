"""Measure the heads of one model in more ways than importance, on the same sentence pairs."""

from headcount.base import command
from headcount.base.folders import with_text
from headcount.base.settings.flags import read_flags
from headcount.base.settings.importance import ImportanceSettings, MeasuresSettings
from headcount.heads.more_measures import write_measures
from headcount.store.model_folder import open_model


def main() -> None:
    """Read the flags and write the measures as CSV, with two more CSV and JSON beside them."""
    parser = command.parser(__doc__, "--model", "--bpe", out="CSV to write")
    args, importance, measures = read_flags(parser, ImportanceSettings, MeasuresSettings)
    shown = {"importance": importance, "measures": measures}
    model, pair = open_model(args, importance.threads)
    files = [*model.files, *pair.files(with_text(importance.data))]
    origin = command.provenance("scripts/more_measures.py", shown, None, files)
    write_measures(model, pair, importance, measures, args.out, origin)


if __name__ == "__main__":
    command.run(main)
