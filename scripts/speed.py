"""Time every model of a pair and seed: encoding and whole translation, in turns."""

from pathlib import Path

from headcount.base import command
from headcount.base.errors import UserError
from headcount.base.folders import TIMING
from headcount.base.settings.decode import DecodeSettings, SpeedSettings
from headcount.base.settings.flags import read_flags
from headcount.deployment.speed import write_speed
from headcount.model.machine import use_threads
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder


def main() -> None:
    """Read the flags, measure, and write the times as CSV, and a JSON beside it."""
    parser = command.parser(__doc__, "--bpe", out="CSV to write")
    parser.add_argument("--runs", required=True, nargs="+", help="names of the runs")
    words = "a model's folder for each run"
    parser.add_argument("--models", required=True, nargs="+", type=Path, help=words)
    args, speed, decode = read_flags(parser, SpeedSettings, DecodeSettings)
    if len(args.runs) != len(args.models):
        raise UserError(f"--models: expected {len(args.runs)} folders, found {len(args.models)}")
    use_threads(speed.threads)
    models = dict(zip(args.runs, map(ModelFolder, args.models), strict=True))
    pair = PairFolder(args.bpe)
    files = [file for model in models.values() for file in model.files] + pair.files(TIMING)
    shown = {"speed": speed, "decode": decode}
    origin = command.provenance("scripts/speed.py", shown, None, files)
    write_speed(models, pair, speed, decode, args.out, origin)


if __name__ == "__main__":
    command.run(main)
