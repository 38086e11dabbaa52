"""Time the importance of one model's heads beside training on the same sentences."""

from headcount.base import command
from headcount.base.folders import with_text
from headcount.base.settings.decode import SpeedSettings
from headcount.base.settings.flags import read_flags
from headcount.base.settings.importance import ImportanceSettings
from headcount.deployment.importance_speed import write_importance_speed
from headcount.store.model_folder import open_model


def main() -> None:
    """Read the flags, measure, and write the times as CSV, and a JSON beside it."""
    parser = command.parser(__doc__, "--model", "--bpe", out="CSV to write")
    args, settings, speed = read_flags(parser, ImportanceSettings, SpeedSettings)
    shown = {"importance": settings, "speed": speed}
    model, pair = open_model(args, speed.threads)
    files = [*model.files, *pair.files(with_text(settings.data))]
    origin = command.provenance("scripts/importance_speed.py", shown, None, files)
    write_importance_speed(model, pair, settings, speed, args.out, origin)


if __name__ == "__main__":
    command.run(main)
