"""Prune one model by the method of --run, and write the smaller model."""

from headcount.base import command
from headcount.base.errors import UserError
from headcount.base.folders import TRAINING
from headcount.base.settings.flags import read_run_flag
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.runs import PrunedSettings
from headcount.base.settings.train import GatesSettings, SubsetSettings, TrainSettings
from headcount.model.machine import use_threads
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount.training.pruning_run import PruningRun

READ = {
    "gates": ("init_from", "gates"),
    "gates from none": ("model", "gates"),
    "subset": ("init_from", "gates", "subset"),
    "importance": ("init_from", "kept", "importance", "gates"),
    "random": ("init_from", "kept", "gates"),
    "scratch": ("model", "kept"),
}
"""Flags and sections that a method of a run reads."""
FILES = ("init_from", "kept", "importance")


@command.script(
    *command.TRAINING, "[--init-from]", "[--kept]", "[--importance]", folder="folder of the run"
)
def main(
    args: command.Flags,
    model: ModelSettings,
    train: TrainSettings,
    gates: GatesSettings,
    subset: SubsetSettings,
) -> None:
    start = ModelFolder(args.init_from) if args.init_from else None
    run = read_run_flag(args.run, PrunedSettings, start.settings if start else model)
    from_none = run.method == "gates" and run.from_none
    read = READ["gates from none" if from_none else run.method]
    files = {name: getattr(args, name) for name in FILES}
    given = {name for name in FILES if files[name]}
    given |= {name for name, section in args.sections.items() if section != type(section)()}
    for name in sorted(given.difference(read, ["train"])):
        raise UserError(f"--run: {run.label} has no use for {name.replace('_', '-')}")
    for name in sorted(set(FILES).intersection(read) - given):
        raise UserError(f"--run: {run.label} needs --{name.replace('_', '-')}")
    use_threads(train.threads)
    pair = PairFolder(args.bpe)
    inputs = [pair.files(TRAINING), start.files if start else None, args.kept, args.importance]
    unread = {name: None for name in args.sections if name not in (*read, "train")}
    origin = args.origin(*inputs, run=run.label, **unread)
    made = PruningRun(train, args.seed, origin, args.state, args.save_seconds, run, pair)
    made.finish(start or model, args.out, args.kept, args.importance, gates, subset)
