"""Translate without each head of a Hugging Face encoder-decoder that stays as it is.

And with one head alone in each of its layers, as scripts/ablation.py does with a model of ours;
needs the extra `pretrained`.
"""

from dataclasses import asdict

from headcount.ablation.ablation import with_dev, write_ablation
from headcount.base import command
from headcount.base.settings.ablation import AblationSettings
from headcount.base.settings.decode import GenerateSettings
from headcount.base.settings.flags import read_flags
from headcount.model.machine import use_threads
from headcount_hf.hooks.hooked_folder import HookedFolder, HookedInputs, Told


def main() -> None:
    """Read the flags and write BLEU under every mask as CSV, and a JSON beside it."""
    flags = ("--model", *command.HOOKED, "--src-lang", "--tgt-lang")
    parser = command.parser(__doc__, *flags, out="CSV to write")
    args, ablation, generate = read_flags(parser, AblationSettings, GenerateSettings)
    use_threads(generate.threads)
    told = Told(args.src_code, args.tgt_code, args.prefix)
    pair = f"{args.src_lang}-{args.tgt_lang}"
    inputs = HookedInputs(HookedFolder(args.model, told), args.text, pair, generate)
    files = inputs.files(with_dev(ablation))
    shown = {"ablation": ablation, "generate": generate, "told": asdict(told)}
    origin = command.provenance(
        "scripts/hooked_ablation.py", shown, None, files, packages=command.HUGGING_FACE
    )
    write_ablation(inputs, ablation, args.out, origin)


if __name__ == "__main__":
    command.run(main)
