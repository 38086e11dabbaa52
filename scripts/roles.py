"""Measure what every head of one model attends to: confidence, positions, syntax, rare words."""

from headcount.base import command
from headcount.base.folders import ROLES
from headcount.base.settings.flags import read_flags
from headcount.base.settings.roles import RolesSettings
from headcount.heads.roles import write_roles
from headcount.store.model_folder import open_model


def main() -> None:
    """Read the flags and write attention.csv, positions.csv, syntax.csv and roles.json."""
    parser = command.parser(__doc__, "--model", "--bpe", "--treebanks", out="folder to write into")
    args, settings = read_flags(parser, RolesSettings)
    model, pair = open_model(args, settings.threads)
    files = [*model.files, *pair.files(ROLES), *args.treebanks]
    origin = command.provenance("scripts/roles.py", {"roles": settings}, None, files)
    write_roles(model, pair, args.treebanks, settings, args.out, origin)


if __name__ == "__main__":
    command.run(main)
