"""Translate one pair with heads masked by the rankings of all pairs that share the model.

The model is ours, or one of Hugging Face with --src-lang and --tgt-lang (extra `pretrained`).
"""

from headcount.ablation.pair_transfer import write_transfer
from headcount.base.command import Flags, flag, path, script
from headcount.base.errors import UserError
from headcount.base.settings.data import TransferSettings
from headcount.base.settings.decode import DecodeSettings
from headcount_hf.hooks.opened import SEARCHED, open_inputs


@script(
    *("--model", "[--bpe]", "--text", "--metrics", "--seed"),
    flag("--tests", "names of the test sets that are translated", nargs="+"),
    flag("--pairs", "names of the pairs", nargs="+"),
    path("--importance", "importance.csv of the model for each of them", nargs="+"),
    *SEARCHED,
    out="CSV to write",
)
def main(args: Flags, many_pairs: TransferSettings, decode: DecodeSettings) -> None:
    if len(args.pairs) != len(args.importance):
        raise UserError(
            f"--importance: expected {len(args.pairs)} files, found {len(args.importance)}"
        )
    inputs, facts = open_inputs(args, decode)
    importance = dict(zip(args.pairs, args.importance, strict=True))
    origin = args.origin(inputs.files(args.tests), args.importance, **facts)
    write_transfer(inputs, importance, args.tests, many_pairs, args.seed, args.out, origin)
