"""Measure the importance of every head of a Hugging Face encoder-decoder that stays as it is.

Its folder has weights as safetensors and a tokeniser; needs the extra `pretrained`.
"""

from dataclasses import asdict

from headcount.base import command
from headcount.base.settings.flags import read_flags
from headcount.base.settings.importance import ImportanceSettings
from headcount.heads.importance import write_importance
from headcount.model.machine import use_threads
from headcount_hf.hooks.hooked_folder import HookedFolder, HookedTexts, Told


def main() -> None:
    """Read the flags and write the importance as CSV, and a JSON beside it."""
    parser = command.parser(__doc__, "--model", *command.HOOKED, out="CSV to write")
    args, settings = read_flags(parser, ImportanceSettings)
    use_threads(settings.threads)
    told = Told(args.src_code, args.tgt_code, args.prefix)
    model = HookedFolder(args.model, told)
    texts = HookedTexts(model, args.text)
    files = [*model.files, *texts.texts(settings.data)]
    shown = {"importance": settings, "told": asdict(told)}
    origin = command.provenance(
        "scripts/hooked_importance.py", shown, None, files, packages=command.HUGGING_FACE
    )
    write_importance(model, texts, settings, args.out, origin)


if __name__ == "__main__":
    command.run(main)
