"""Time one model without more and more of its heads, really removed."""

from headcount.base.command import Flags, script
from headcount.base.folders import TIMING
from headcount.base.settings.decode import DecodeSettings, SpeedSettings
from headcount.base.settings.heads import AblationSettings
from headcount.deployment.speed import without_shares, write_times
from headcount.store.model_folder import open_model


@script("--model", "--importance", "--bpe", out="CSV to write")
def main(
    args: Flags, ablation: AblationSettings, speed: SpeedSettings, decode: DecodeSettings
) -> None:
    model, pair = open_model(args, speed.threads)
    origin = args.origin(model.files, pair.files(TIMING), args.importance)
    timed = list(without_shares(model, args.importance, pair, ablation, decode.device))
    write_times(timed, pair, speed, decode, args.out, origin)
