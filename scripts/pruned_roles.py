"""Measure what the heads do that several pruned models have left; what roles.py does for one.

The files of each run are written into its folder; heads keep their addresses in the original.
"""

from pathlib import Path

from headcount.base import command
from headcount.base.folders import ROLES
from headcount.base.results import provenance
from headcount.base.settings.flags import add_flags, from_flags
from headcount.base.settings.roles import RolesSettings
from headcount.heads.roles_run import write_roles
from headcount.model.machine import use_threads
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder


def main() -> None:
    """Read the flags and write the files of every run."""
    parser = command.parser(__doc__)
    parser.add_argument("--runs", required=True, nargs="+", type=Path, help="folders of the runs")
    parser.add_argument("--bpe", required=True, type=Path, help="folder of the segmented pair")
    parser.add_argument(
        "--treebanks", nargs="*", default=[], type=Path, help="files that trees.py wrote"
    )
    add_flags(parser, RolesSettings)
    args = parser.parse_args()
    settings = from_flags(args, RolesSettings)
    use_threads(settings.threads)
    shown = {"roles": settings.model_dump()}
    pair = PairFolder(args.bpe)
    for run in args.runs:
        model = ModelFolder(run / "model")
        files = [*model.files, *pair.files(ROLES), *args.treebanks]
        origin = provenance("scripts/pruned_roles.py", shown, None, files)
        write_roles(model, pair, args.treebanks, settings, run, origin)


if __name__ == "__main__":
    command.run(main)
