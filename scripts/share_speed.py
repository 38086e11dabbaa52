"""Time one model without more and more of its heads, really removed."""

from headcount.base import command
from headcount.base.folders import TIMING
from headcount.base.settings.ablation import AblationSettings
from headcount.base.settings.decode import DecodeSettings, SpeedSettings
from headcount.base.settings.flags import read_flags
from headcount.deployment.speed import write_share_speed
from headcount.store.model_folder import open_model


def main() -> None:
    """Read the flags, measure, and write the times as CSV, and a JSON beside it."""
    parser = command.parser(__doc__, "--model", "--importance", "--bpe", out="CSV to write")
    asked = (AblationSettings, SpeedSettings, DecodeSettings)
    args, ablation, speed, decode = read_flags(parser, *asked)
    shown = {"ablation": ablation, "speed": speed, "decode": decode}
    model, pair = open_model(args, speed.threads)
    files = [*model.files, *pair.files(TIMING), args.importance]
    origin = command.provenance("scripts/share_speed.py", shown, None, files)
    write_share_speed(model, args.importance, pair, ablation, speed, decode, args.out, origin)


if __name__ == "__main__":
    command.run(main)
