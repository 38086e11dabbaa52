"""Measure what every head of one model, or of several runs (--runs), attends to."""

from headcount.base.command import Flags, path, script
from headcount.base.errors import UserError
from headcount.base.folders import ROLES
from headcount.base.settings.heads import RolesSettings
from headcount.heads.roles import write_roles
from headcount.model.machine import use_threads
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

OUTPUTS = (
    path("[--out]", "folder to write into, with --model"),
    path("[--runs]", "folders of runs, in place of --model and --out", nargs="+"),
)


@script("[--model]", "--bpe", "--treebanks", *OUTPUTS)
def main(args: Flags, roles: RolesSettings) -> None:
    one = args.model and args.out and not args.runs
    if not one and not (args.runs and not args.model and not args.out):
        raise UserError("expected --model and --out, or --runs")
    use_threads(roles.threads)
    pair = PairFolder(args.bpe)
    models = {args.out: args.model} if one else {run: run / "model" for run in args.runs}
    for out, path_ in models.items():
        model = ModelFolder(path_)
        origin = args.origin(model.files, pair.files(ROLES), args.treebanks)
        write_roles(model, pair, args.treebanks, roles, out, origin)
