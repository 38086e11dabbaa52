"""Translate with one model under many head masks: groups by importance, cumulative, random.

The model is ours, or one of Hugging Face with --src-lang and --tgt-lang (extra `pretrained`).
"""

from headcount.ablation.masking import write_masking
from headcount.base.addresses import SCOPES
from headcount.base.command import Flags, flag, path, script
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.heads import MaskingSettings
from headcount_hf.hooks.opened import SEARCHED, open_inputs

RANKINGS = (
    path("--own", "importance.csv of the model"),
    path("[--baseline]", "importance.csv of the baseline, to mask by its ranking too"),
)
SCOPE = flag("--scope", "units that are masked, all: all heads", choices=SCOPES, default="all")
FLAGS = ("--model", "[--bpe]", "--text", "--metrics", "--seed", *RANKINGS, SCOPE, *SEARCHED)


@script(*FLAGS, out="CSV to write")
def main(args: Flags, masking: MaskingSettings, decode: DecodeSettings) -> None:
    rankings = {"own": args.own} | ({"baseline": args.baseline} if args.baseline else {})
    inputs, facts = open_inputs(args, decode)
    origin = args.origin(inputs.files(masking.test_sets), rankings.values(), **facts)
    write_masking(inputs, rankings, masking, args.seed, args.out, origin, args.scope)
