"""Fetch a Hugging Face model of one commit, or copy one's own, with the SHA-256 of every file.

Needs the extra `bert`. Weights are taken as safetensors only, and no code.
"""

from headcount.base.command import MANIFEST, Flags, flag, script
from headcount_hf.classifiers.classifier_files import fetch_classifier


@script(flag("--model", "a local folder, or a name on the hub"), "[--revision]", MANIFEST)
def main(args: Flags) -> None:
    fetch_classifier(args.model, args.revision, args.out)
