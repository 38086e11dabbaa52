"""Measure the importance of every head of one model: the size of the loss's derivative."""

from headcount.base import command
from headcount.base.folders import with_text
from headcount.base.settings.flags import read_flags
from headcount.base.settings.importance import ImportanceSettings
from headcount.heads.importance import write_importance
from headcount.store.model_folder import open_model


def main() -> None:
    """Read the flags and write the importance as CSV, and a JSON beside it."""
    parser = command.parser(__doc__, "--model", "--bpe", out="CSV to write")
    args, settings = read_flags(parser, ImportanceSettings)
    shown = {"importance": settings}
    model, pair = open_model(args, settings.threads)
    files = [*model.files, *pair.files(with_text(settings.data))]
    origin = command.provenance("scripts/importance.py", shown, None, files)
    write_importance(model, pair, settings, args.out, origin)


if __name__ == "__main__":
    command.run(main)
