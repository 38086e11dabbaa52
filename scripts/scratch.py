"""Train, from a random start, a model that has only the heads that a gates run kept.

Killed or stopped, the same command goes on from the last saved state, to the same last bit.
"""

from pathlib import Path

from headcount.base import command
from headcount.base.folders import TRAINING
from headcount.base.results import provenance
from headcount.base.settings.flags import add_flags, from_flags, read_run_flag
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.runs import PrunedSettings, label
from headcount.base.settings.train import TrainSettings
from headcount.model.machine import use_threads
from headcount.store.pair_folder import PairFolder
from headcount.training.pruning_run import PruningRun
from headcount.training.training_run import Session


def main() -> None:
    """Read the flags, train, and write the folder of the run."""
    parser = command.parser(__doc__)
    parser.add_argument("--run", required=True, help="scratch-gates-all-l0.01, …")
    parser.add_argument("--kept", required=True, type=Path, help="heads.csv of the gates run")
    command.add_run_flags(parser)
    add_flags(parser, ModelSettings)
    add_flags(parser, TrainSettings)
    args = parser.parse_args()
    model, train = from_flags(args, ModelSettings), from_flags(args, TrainSettings)
    run = read_run_flag(args.run, PrunedSettings, model.grid.size, "scratch")
    use_threads(train.threads)
    settings = {"run": label(run), "model": model.model_dump(), "train": train.model_dump()}
    pair = PairFolder(args.bpe)
    files = [*pair.files(TRAINING), args.kept]
    origin = provenance("scripts/scratch.py", settings, args.seed, files)
    session = Session(args.seed, origin, args.state, args.save_seconds)
    PruningRun(run, pair, train, session).finish_scratch(model, args.kept, args.out)


if __name__ == "__main__":
    command.run(main)
