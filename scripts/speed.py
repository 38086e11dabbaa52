"""Time every model of a pair and seed: encoding and whole translation, in turns."""

from headcount.base.command import Flags, flag, path, script
from headcount.base.errors import UserError
from headcount.base.folders import TIMING
from headcount.base.settings.decode import DecodeSettings, SpeedSettings
from headcount.deployment.speed import trained_models, write_times
from headcount.model.machine import use_threads
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder


@script(
    "--bpe",
    flag("--runs", "names of the runs", nargs="+"),
    path("--models", "a model's folder for each run", nargs="+"),
    out="CSV to write",
)
def main(args: Flags, speed: SpeedSettings, decode: DecodeSettings) -> None:
    if len(args.runs) != len(args.models):
        raise UserError(f"--models: expected {len(args.runs)} folders, found {len(args.models)}")
    use_threads(speed.threads)
    models = dict(zip(args.runs, map(ModelFolder, args.models), strict=True))
    pair = PairFolder(args.bpe)
    files = [file for model in models.values() for file in model.files]
    origin = args.origin(files, pair.files(TIMING))
    timed = list(trained_models(models, pair, decode.device))
    write_times(timed, pair, speed, decode, args.out, origin)
