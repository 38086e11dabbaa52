"""Train one Transformer on the subwords of a pair, and write weights, curve and head masks."""

from functools import partial

from headcount.base import command
from headcount.base.folders import TRAINING
from headcount.base.settings.flags import read_run_flag
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.train import TrainSettings
from headcount.base.settings.training_runs import RunSettings
from headcount.data.fetching.models import check_record
from headcount.model.machine import use_threads
from headcount.store.pair_folder import PairFolder
from headcount.training.training_run import TrainingRun
from headcount_hf.pretrained.imports import imported_files, imported_start


@command.script(*command.TRAINING, "[--pretrained]", folder="folder of the run")
def main(args: command.Flags, model: ModelSettings, train: TrainSettings) -> None:
    run = read_run_flag(args.run, RunSettings, model)
    model = run.own_model(model)
    use_threads(train.threads)
    pair = PairFolder(args.bpe)
    inputs, start = pair.files(TRAINING), None
    if args.pretrained:
        check_record(args.pretrained)
        inputs += imported_files(args.pretrained)
        start = partial(imported_start, args.pretrained, pair, model)
    origin = args.origin(inputs, run=run.label, model=model)
    resumable = args.seed, origin, args.state, args.save_seconds
    TrainingRun(train, *resumable, run, pair).finish(model, args.out, start)
