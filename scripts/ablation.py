"""Translate without each head of one model, and with one head alone in each of its layers."""

from headcount.ablation.masking import with_dev, write_ablation
from headcount.base.command import Flags, script
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.heads import AblationSettings
from headcount_hf.hooks.opened import SEARCHED, open_inputs


@script("--model", "[--bpe]", "--text", "--metrics", *SEARCHED, out="CSV to write")
def main(args: Flags, ablation: AblationSettings, decode: DecodeSettings) -> None:
    inputs, facts = open_inputs(args, decode)
    names = with_dev(ablation)
    origin = args.origin(inputs.files(names), **facts)
    masked, tests = inputs.load(), inputs.read_tests(names, ablation.sentences)
    write_ablation(masked, tests, args.out, origin)
