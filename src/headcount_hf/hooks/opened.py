"""Models that commands open from flags: ours, or Hugging Face models that stay in that library."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headcount.ablation.masked_bleu import Inputs, MaskedInputs
from headcount.base.command import HUGGING_FACE, Flags, flag
from headcount.base.errors import UserError
from headcount.base.folders import DESCRIPTION, with_text
from headcount.base.settings.decode import DecodeSettings, GenerateSettings
from headcount.base.settings.flags import from_flags
from headcount.model.machine import use_threads
from headcount.store.model_folder import open_model
from headcount_hf.hooks.hooked_folder import HookedFolder, HookedInputs

HOOKED = (
    flag("--src-code", "name of the source language in a Hugging Face model", default=""),
    flag("--tgt-code", "name of the target language in a Hugging Face model", default=""),
    flag("--prefix", "text in front of every source for a Hugging Face model", default=""),
)
"""Flags of a Hugging Face model that is measured."""
_LONGEST = {"metavar": "X", "dest": "--max-new-tokens", "default": argparse.SUPPRESS}
SEARCHED = (
    *HOOKED,
    *("[--src-lang]", "[--tgt-lang]"),
    flag("[--max-new-tokens]", "longest output of a Hugging Face model (subwords)", **_LONGEST),
)
"""Flags of a Hugging Face model that translates."""


def open_texts(args: Flags, split: str, threads: int) -> tuple[Any, Any, list[Path], Any]:
    """Return folder of a model, texts, files that are read with a split, facts for the record."""
    if not is_hooked(args.model):
        _check_flags(args, (), ("--text", *_names(HOOKED)))
        model, pair = open_model(args, threads)
        return model, pair, [*model.files, *pair.files(with_text(split))], {}
    _check_flags(args, ("--text",), ("--bpe",))
    texts, facts = _open_hooked(args, threads)
    return texts.model, texts, texts.files([split]), facts


def open_inputs(args: Flags, decode: DecodeSettings) -> tuple[Inputs, dict[str, Any]]:
    """Return a model with text to translate, and facts for the record."""
    if not is_hooked(args.model):
        _check_flags(args, (), _names(SEARCHED))
        return MaskedInputs(*open_model(args, decode.threads), args.text, decode, args.metrics), {}
    keys = sorted(decode.model_fields_set - GenerateSettings.model_fields.keys())
    ours = [f"--{key.replace('_', '-')}" for key in keys]
    _check_flags(args, ("--src-lang", "--tgt-lang"), ("--bpe", "--metrics", *ours))
    generate = from_flags(args, GenerateSettings)
    pair = f"{args.src_lang}-{args.tgt_lang}"
    inputs, facts = _open_hooked(args, generate.threads, pair, generate)
    return inputs, facts | {"decode": None, "generate": generate}


def is_hooked(folder: Path) -> bool:
    """Return True if the folder contains a model of Hugging Face's library."""
    return (folder / "config.json").is_file() and not (folder / DESCRIPTION).is_file()


def _open_hooked(args: Flags, threads: int, *search: Any) -> tuple[HookedInputs, dict[str, Any]]:
    use_threads(threads)
    languages = {"source": args.src_code, "target": args.tgt_code, "prefix": args.prefix}
    inputs = HookedInputs(HookedFolder(args.model, **languages), args.text, *search)
    return inputs, {"told": languages, "packages": HUGGING_FACE}


def _names(flags: Sequence[Any]) -> list[str]:
    return [(item if isinstance(item, str) else item[0]).strip("[]") for item in flags]


def _check_flags(args: Flags, needed: Sequence[str], others: Sequence[str]) -> None:
    """Raise UserError for flags that this kind of model needs or does not have."""
    kind = "a Hugging Face model" if is_hooked(args.model) else "a model of this project"
    for name in (*needed, *others):
        value = getattr(args, name[2:].replace("-", "_"), None) or getattr(args, name, None)
        if bool(value) != (name in needed):
            expected = "expected with" if name in needed else "not for"
            raise UserError(f"{name}: {expected} {kind}, which --model {args.model} is")
