"""Remove units of a model for good: by --kept, by --list, or by --importance with --keep."""

from headcount.base.addresses import SCOPES
from headcount.base.command import Flags, flag, path, script
from headcount.base.errors import UserError
from headcount.heads.importance import read_importance
from headcount.heads.measures_files import read_mean_outputs
from headcount.store.kept_heads import grid_named, pick_heads
from headcount.store.model_folder import ModelFolder
from headcount.training.pruning_run import write_removed


@script(
    "--model",
    path("[--kept]", "heads.csv: heads whose gate is 0 are removed"),
    path("[--list]", "text that lists heads to remove, such as enc_self.0.3"),
    path("[--importance]", "importance.csv: the least important units are removed"),
    flag("[--keep]", "number of units that stay, with --importance", type=int),
    flag("--scope", "units that --keep counts; all others stay", choices=SCOPES, default="all"),
    path("[--means]", "measures_means.csv: removed heads leave their mean outputs"),
    folder="folder for model/ and heads.csv",
)
def main(args: Flags) -> None:
    files = [file for file in (args.kept, args.list, args.importance) if file]
    if len(files) != 1:
        raise UserError(f"expected one of --kept, --list and --importance, found {len(files)}")
    model = ModelFolder(args.model)
    grid = grid_named(files, model.settings)
    importance = read_importance(args.importance, model, grid) if args.importance else None
    kept = pick_heads(grid, args.kept, args.list, importance, args.keep, args.scope)
    means = read_mean_outputs(args.means, model) if args.means else None
    origin = args.origin(model.files, files, args.means, keep=args.keep, scope=args.scope)
    write_removed(model, kept, means, args.out, origin)
