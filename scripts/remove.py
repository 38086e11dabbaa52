"""Take heads out of a trained model for good: smaller matrices, the output of the masked model.

Which heads: those whose gate is 0 in a heads.csv, all but the most important ones, or a list.
"""

from pathlib import Path

from headcount.base import command
from headcount.heads.importance import read_importance
from headcount.heads.measures_files import read_mean_outputs
from headcount.store.kept_heads import pick_heads
from headcount.store.model_folder import ModelFolder
from headcount.training.pruning_run import write_removed


def main() -> None:
    """Read the flags and write the folder of the smaller model."""
    parser = command.parser(__doc__, "--model", folder="folder for model/ and heads.csv")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--kept", type=Path, help="heads.csv: heads whose gate is 0 go")
    source.add_argument("--list", type=Path, help="text of heads that go, such as enc_self.0.3")
    source.add_argument("--importance", type=Path, help="importance.csv: the least important go")
    parser.add_argument("--keep", type=int, help="heads that stay, with --importance")
    parser.add_argument("--means", type=Path, help="measures_means.csv: go, but leave their means")
    args = parser.parse_args()
    model = ModelFolder(args.model)
    grid = model.settings.grid
    importance = read_importance(args.importance, model, grid) if args.importance else None
    kept = pick_heads(grid, args.kept, args.list, importance, args.keep)
    named = args.kept or args.list or args.importance
    means = read_mean_outputs(args.means, model) if args.means else None
    settings = {"keep": args.keep}
    files = [*model.files, *filter(None, (named, args.means))]
    origin = command.provenance("scripts/remove.py", settings, None, files)
    write_removed(model, kept, means, args.out, origin)


if __name__ == "__main__":
    command.run(main)
