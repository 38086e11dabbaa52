"""Time the importance of one model's heads beside training on the same sentences."""

from headcount.base.command import Flags, script
from headcount.base.folders import with_text
from headcount.base.settings.decode import SpeedSettings
from headcount.base.settings.heads import ImportanceSettings
from headcount.deployment.importance_speed import write_importance_speed
from headcount.store.model_folder import open_model


@script("--model", "--bpe", out="CSV to write")
def main(args: Flags, importance: ImportanceSettings, speed: SpeedSettings) -> None:
    model, pair = open_model(args, speed.threads)
    origin = args.origin(model.files, pair.files(with_text(importance.data)))
    write_importance_speed(model, pair, importance, speed, args.out, origin)
