"""Measure how well the cross-attention heads of models align words, against links of a text."""

from headcount.base.command import Flags, path, script
from headcount.base.errors import UserError
from headcount.base.settings.heads import AlignmentSettings
from headcount.heads.alignment_rates import write_alignment
from headcount.model.machine import use_threads
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder


@script(
    "--bpe",
    path("--links", "file that links.py wrote"),
    path("--models", "folders of models", nargs="+"),
    path("--outs", "folders to write into, one for each model", nargs="+"),
)
def main(args: Flags, alignment: AlignmentSettings) -> None:
    if len(args.models) != len(args.outs):
        counts = f"{len(args.models)} and {len(args.outs)}"
        raise UserError(f"--models, --outs: expected as many of both, found {counts}")
    use_threads(alignment.threads)
    pair, models = PairFolder(args.bpe), [ModelFolder(path) for path in args.models]
    origins = [args.origin(model.files, pair.files(), args.links) for model in models]
    write_alignment(models, args.outs, pair, args.links, alignment, origins)
