"""Measure what the heads do that several pruned models have left; what roles.py does for one.

The files of each run are written into its folder; heads keep their addresses in the original.
"""

from pathlib import Path

from headcount.base import command
from headcount.base.folders import ROLES
from headcount.base.settings.flags import read_flags
from headcount.base.settings.roles import RolesSettings
from headcount.heads.roles import write_roles
from headcount.model.machine import use_threads
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder


def main() -> None:
    """Read the flags and write the files of every run."""
    parser = command.parser(__doc__, "--bpe", "--treebanks")
    parser.add_argument("--runs", required=True, nargs="+", type=Path, help="folders of the runs")
    args, settings = read_flags(parser, RolesSettings)
    use_threads(settings.threads)
    pair = PairFolder(args.bpe)
    for run in args.runs:
        model = ModelFolder(run / "model")
        files = [*model.files, *pair.files(ROLES), *args.treebanks]
        origin = command.provenance("scripts/pruned_roles.py", {"roles": settings}, None, files)
        write_roles(model, pair, args.treebanks, settings, run, origin)


if __name__ == "__main__":
    command.run(main)
