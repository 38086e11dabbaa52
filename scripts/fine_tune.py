"""Remove as many heads as a gates run did, by importance or at random, and fine-tune the rest.

Killed or stopped, the same command goes on from its last state, on a CPU to the same last bit.
"""

from pathlib import Path

from headcount.base import command
from headcount.base.folders import TRAINING
from headcount.base.settings.flags import read_flags, read_run_flag
from headcount.base.settings.runs import PrunedSettings, label
from headcount.base.settings.train import GatesSettings, TrainSettings
from headcount.model.machine import use_threads
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount.training.pruning_run import PruningRun
from headcount.training.training_run import Session


def main() -> None:
    """Read the flags, remove heads, fine-tune, and write the folder of the run."""
    flags = (*command.TRAINING, "--init-from", "--kept")
    parser = command.parser(__doc__, *flags, folder="folder of the run")
    parser.add_argument("--run", required=True, help="ranked-gates-all-l0.01, drawn-gates-…")
    parser.add_argument("--importance", type=Path, help="importance.csv of the model, for ranked-…")
    args, train, gates = read_flags(parser, TrainSettings, GatesSettings)
    model, pair = ModelFolder(args.init_from), PairFolder(args.bpe)
    run = read_run_flag(args.run, PrunedSettings, model.settings, "importance", "random")
    use_threads(train.threads)
    settings = {"run": label(run), "train": train, "gates": gates}
    files = [*pair.files(TRAINING), *model.files, *filter(None, [args.kept, args.importance])]
    origin = command.provenance("scripts/fine_tune.py", settings, args.seed, files)
    session = Session(args.seed, origin, args.state, args.save_seconds)
    pruning = PruningRun(run, pair, train, session)
    pruning.finish_fine_tuned(model, args.kept, args.importance, gates, args.out)


if __name__ == "__main__":
    command.run(main)
