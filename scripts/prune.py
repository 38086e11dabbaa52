"""Prune one model in the way that --run names, and write the smaller model.

gates-…: fine-tune with Hard Concrete gates on the heads, or, with …-from-none, train with them from
random weights; closed heads are deleted. subset-…: learn which heads stay while fine-tuning.
ranked-… and drawn-…: delete as many heads as a gates run did, by importance or at random, and
fine-tune. scratch-…: train the heads that a gates run kept from a random start.
Killed or stopped, the same command goes on from its last state, on a CPU to the same last bit.
"""

from headcount.base.command import TRAINING as TRAINING_FLAGS
from headcount.base.command import Flags, script
from headcount.base.errors import UserError
from headcount.base.folders import TRAINING
from headcount.base.settings.flags import read_run_flag
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.runs import PrunedSettings, label
from headcount.base.settings.train import GatesSettings, SubsetSettings, TrainSettings
from headcount.model.machine import use_threads
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount.training.pruning_run import PruningRun
from headcount.training.training_run import Session

READ = {
    "gates": ("init_from", "gates"),
    "none": ("model", "gates"),  # gates from random weights
    "subset": ("init_from", "gates", "subset"),
    "importance": ("init_from", "gates", "kept", "importance"),
    "random": ("init_from", "gates", "kept", "importance"),
    "scratch": ("model", "kept"),
}
"""Flags and sections that are read, by the method of a run."""


def read_run(args: Flags) -> tuple[PrunedSettings, str, ModelFolder | None]:
    """Return the run, its method in `READ` and the model to prune.

    Raises UserError unless the flags are those that the method reads.
    """
    start = ModelFolder(args.init_from) if args.init_from else None
    model = start.settings if start else args.sections["model"]
    run = read_run_flag(args.run, PrunedSettings, model)
    method = "none" if run.method == "gates" and run.from_none else run.method
    given = {name for name in ("init_from", "kept", "importance") if getattr(args, name)}
    given |= {name for name, section in args.sections.items() if section.model_fields_set}
    for name in sorted(given.difference(READ[method], ("train",))):
        raise UserError(f"--run: {label(run)} has no use for {name.replace('_', '-')}")
    for name in ("init_from", "kept"):
        if name in READ[method] and name not in given:
            raise UserError(f"--run: {label(run)} needs --{name.replace('_', '-')}")
    return run, method, start


@script(
    *(*TRAINING_FLAGS, "[--init-from]", "[--kept]", "[--importance]"), folder="folder of the run"
)
def main(
    args: Flags,
    model: ModelSettings,
    train: TrainSettings,
    gates: GatesSettings,
    subset: SubsetSettings,
) -> None:
    """Write the folder of the run."""
    run, method, start = read_run(args)
    pair = PairFolder(args.bpe)
    use_threads(train.threads)
    unread = {name: None for name in ("model", "gates", "subset") if name not in READ[method]}
    files = start.files if start else None
    texts = pair.files(TRAINING)
    origin = args.origin(texts, files, args.kept, args.importance, run=label(run), **unread)
    session = Session(args.seed, origin, args.state, args.save_seconds)
    pruning = PruningRun(run, pair, train, session)
    if method == "gates":
        pruning.finish_gates(start, gates, args.out)
    elif method == "none":
        pruning.finish_gates_from_none(model, gates, args.out)
    elif method == "subset":
        pruning.finish_subset(start, gates, subset, args.out)
    elif method == "scratch":
        pruning.finish_scratch(model, args.kept, args.out)
    else:
        pruning.finish_fine_tuned(start, args.kept, args.importance, gates, args.out)
