"""Translate with a Hugging Face encoder-decoder that stays as it is, under many head masks.

As scripts/masking.py does with a model of ours; needs the extra `pretrained`.
"""

from dataclasses import asdict
from pathlib import Path

from headcount.ablation.masking import write_masking
from headcount.base import command
from headcount.base.settings.ablation import MaskingSettings
from headcount.base.settings.decode import GenerateSettings
from headcount.base.settings.flags import read_flags
from headcount.model.machine import use_threads
from headcount_hf.hooks.hooked_folder import HookedFolder, HookedInputs, Told


def main() -> None:
    """Read the flags and write BLEU under every mask as CSV, and a JSON beside it."""
    flags = ("--model", *command.HOOKED, "--src-lang", "--tgt-lang", "--seed")
    parser = command.parser(__doc__, *flags, out="CSV to write")
    words = "what scripts/hooked_importance.py wrote of the model"
    parser.add_argument("--own", required=True, type=Path, help=words)
    args, masking, generate = read_flags(parser, MaskingSettings, GenerateSettings)
    use_threads(generate.threads)
    told = Told(args.src_code, args.tgt_code, args.prefix)
    pair = f"{args.src_lang}-{args.tgt_lang}"
    inputs = HookedInputs(HookedFolder(args.model, told), args.text, pair, generate)
    files = [*inputs.files(masking.test_sets), args.own]
    shown = {"masking": masking, "generate": generate, "told": asdict(told)}
    origin = command.provenance(
        "scripts/hooked_masking.py", shown, args.seed, files, packages=command.HUGGING_FACE
    )
    write_masking(inputs, {"own": args.own}, masking, args.seed, args.out, origin)


if __name__ == "__main__":
    command.run(main)
