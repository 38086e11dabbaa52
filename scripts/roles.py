"""Measure what every head of one model attends to: confidence, positions, syntax, rare words."""

from headcount.base import command
from headcount.base.folders import ROLES
from headcount.base.results import provenance
from headcount.base.settings.flags import read_flags
from headcount.base.settings.roles import RolesSettings
from headcount.heads.roles_run import write_roles
from headcount.model.machine import use_threads
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder


def main() -> None:
    """Read the flags and write attention.csv, positions.csv, syntax.csv and roles.json."""
    parser = command.parser(__doc__, "--model", "--bpe", "--treebanks", out="folder to write into")
    args, settings = read_flags(parser, RolesSettings)
    use_threads(settings.threads)
    model, pair = ModelFolder(args.model), PairFolder(args.bpe)
    files = [*model.files, *pair.files(ROLES), *args.treebanks]
    origin = provenance("scripts/roles.py", {"roles": settings}, None, files)
    write_roles(model, pair, args.treebanks, settings, args.out, origin)


if __name__ == "__main__":
    command.run(main)
