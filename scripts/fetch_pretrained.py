"""Fetch the files of one translation model, checked by SHA-256, and write the record of them.

Files of the hub are taken from the mirror folder that HEADCOUNT_MIRROR names, if it is set. A
folder of your own is copied. Weights are taken as safetensors only, and no code.
"""

from headcount.base.command import MANIFEST, Flags, flag, script
from headcount.data.fetching.models import fetch_model


@script(flag("--name", "name of the model in config/models.yaml"), "--entry", MANIFEST)
def main(args: Flags) -> None:
    fetch_model(args.name, args.entry, args.out.parent)
