"""Fine-tune a trained model with Hard Concrete gates on its heads; write it without closed heads.

Killed or stopped, the same command goes on from its last state, on a CPU to the same last bit.
"""

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
    """Read the flags, fine-tune, and write the folder of the run."""
    parser = command.parser(__doc__, *command.TRAINING, "--init-from", folder="folder of the run")
    parser.add_argument("--run", required=True, help="gates-all-l0.01, gates-enc_self-l0.02, …")
    args, train, gates = read_flags(parser, TrainSettings, GatesSettings)
    model, pair = ModelFolder(args.init_from), PairFolder(args.bpe)
    run = read_run_flag(args.run, PrunedSettings, model.settings, "gates")
    use_threads(train.threads)
    settings = {"run": label(run), "train": train, "gates": gates}
    files = [*pair.files(TRAINING), *model.files]
    origin = command.provenance("scripts/gates.py", settings, args.seed, files)
    session = Session(args.seed, origin, args.state, args.save_seconds)
    PruningRun(run, pair, train, session).finish_gates(model, gates, args.out)


if __name__ == "__main__":
    command.run(main)
