"""Train, from a random start, a model that has only the heads that a gates run kept.

Killed or stopped, the same command goes on from its last state, on a CPU to the same last bit.
"""

from headcount.base import command
from headcount.base.folders import TRAINING
from headcount.base.settings.flags import read_flags, read_run_flag
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.runs import PrunedSettings, label
from headcount.base.settings.train import TrainSettings
from headcount.model.machine import use_threads
from headcount.store.pair_folder import PairFolder
from headcount.training.pruning_run import PruningRun
from headcount.training.training_run import Session


def main() -> None:
    """Read the flags, train, and write the folder of the run."""
    parser = command.parser(__doc__, *command.TRAINING, "--kept", folder="folder of the run")
    parser.add_argument("--run", required=True, help="scratch-gates-all-l0.01, …")
    args, model, train = read_flags(parser, ModelSettings, TrainSettings)
    run = read_run_flag(args.run, PrunedSettings, model, "scratch")
    use_threads(train.threads)
    settings = {"run": label(run), "model": model, "train": train}
    pair = PairFolder(args.bpe)
    files = [*pair.files(TRAINING), args.kept]
    origin = command.provenance("scripts/scratch.py", settings, args.seed, files)
    session = Session(args.seed, origin, args.state, args.save_seconds)
    PruningRun(run, pair, train, session).finish_scratch(model, args.kept, args.out)


if __name__ == "__main__":
    command.run(main)
