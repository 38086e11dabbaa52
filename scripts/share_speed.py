"""Time one model without more and more of its heads, really removed."""

from headcount.base.command import Flags, script
from headcount.base.folders import TIMING
from headcount.base.settings.decode import DecodeSettings, SpeedSettings
from headcount.base.settings.heads import AblationSettings
from headcount.deployment.speed import write_share_speed
from headcount.store.model_folder import open_model


@script("--model", "--importance", "--bpe", out="CSV to write")
def main(
    args: Flags, ablation: AblationSettings, speed: SpeedSettings, decode: DecodeSettings
) -> None:
    model, pair = open_model(args, speed.threads)
    origin = args.origin(model.files, pair.files(TIMING), args.importance)
    write_share_speed(model, args.importance, pair, ablation, speed, decode, args.out, origin)
