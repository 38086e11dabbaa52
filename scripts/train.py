"""Train one Transformer on the subwords of a pair; write its weights, curve and head masks.

Killed or stopped, the same command goes on from its last state, on a CPU to the same last bit.
"""

from functools import partial
from pathlib import Path

from headcount.base import command
from headcount.base.folders import TRAINING
from headcount.base.settings.flags import read_flags, read_run_flag
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.runs import label
from headcount.base.settings.train import TrainSettings
from headcount.base.settings.training_runs import RunSettings
from headcount.data.fetching.models import check_record
from headcount.model.machine import use_threads
from headcount.store.pair_folder import PairFolder
from headcount.training.training_run import Session, TrainingRun
from headcount_hf.pretrained.imports import imported_files, imported_start


def main() -> None:
    """Read the flags, train, and write the folder of the run."""
    parser = command.parser(__doc__, *command.TRAINING, folder="folder of the run")
    parser.add_argument("--run", required=True, help="baseline, baseline-h1, impt-12.5%%, …")
    parser.add_argument("--pretrained", type=Path, help="folder of a model to start from")
    args, model, train = read_flags(parser, ModelSettings, TrainSettings)
    run = read_run_flag(args.run, RunSettings, model)
    model = run.own_model(model)
    use_threads(train.threads)
    settings = {"run": label(run), "model": model, "train": train}
    pair = PairFolder(args.bpe)
    inputs, start = pair.files(TRAINING), None
    if args.pretrained:
        check_record(args.pretrained)
        inputs += imported_files(args.pretrained)
        start = partial(imported_start, args.pretrained, pair, model)
    origin = command.provenance("scripts/train.py", settings, args.seed, inputs)
    session = Session(args.seed, origin, args.state, args.save_seconds)
    TrainingRun(run, pair, train, session).finish(model, args.out, start)


if __name__ == "__main__":
    command.run(main)
