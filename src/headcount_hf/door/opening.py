"""Models that the command `headcount` opens: ours, or of Hugging Face's library."""

import os
import sys
from pathlib import Path

from headcount.base.command import Flags, path
from headcount.base.errors import UserError
from headcount.base.files import read_json, sha256, write_json
from headcount.base.folders import DESCRIPTION
from headcount.base.settings.section import Compute
from headcount.library.measured import Measured
from headcount.library.model import import_pretrained, load
from headcount.model.machine import use_threads
from headcount_hf.door.hooked_lines import hook
from headcount_hf.hooks.opened import HOOKED, is_hooked
from headcount_hf.pretrained.families import CONFIG, FAMILIES, TOKENIZER_CONFIG, stated
from headcount_hf.pretrained.imports import imported_files

MODEL = path("model", "folder of a model: of this project, or of the Hugging Face library")
OPENED = (MODEL, "[--bpe]", "[--src-lang]", "[--tgt-lang]", *HOOKED)
"""Flags of a model in any library."""


def use_machine(compute: Compute) -> None:
    """Use the threads that a flag names, or all processors of this program."""
    named = "threads" in compute.model_fields_set
    use_threads(compute.threads if named else len(os.sched_getaffinity(0)))


def open_any(args: Flags, compute: Compute, work: Path) -> Measured:
    """Return the model. One that ours can express is imported into `work`, once."""
    use_machine(compute)
    if not any((args.model / name).is_file() for name in (DESCRIPTION, CONFIG)):
        expected = f"a folder with {DESCRIPTION} (of this project) or {CONFIG} (Hugging Face's)"
        raise UserError(f"{args.model}: expected {expected}, found none; correct the name")
    if not is_hooked(args.model):
        return load(args.model, args.bpe, compute.device)
    kind = stated(args.model / CONFIG, "model_type")
    languages = args.src_lang or _stated(args, "source"), args.tgt_lang or _stated(args, "target")
    codes = args.src_code, args.tgt_code
    if kind not in FAMILIES:
        return hook(args.model, *languages, args.prefix, codes, compute.device)
    codes = [code or None for code in codes]
    record, out = work / "imported.json", work / "model"
    made = {"files": {file.name: sha256(file) for file in imported_files(args.model)}}
    made |= {"languages": [*languages, *codes]}
    if not record.is_file() or read_json(record) != made or not out.is_dir():
        print(f"Importing {args.model} ...", file=sys.stderr, flush=True)
        import_pretrained(args.model, *languages, out, codes, compute.device)
        write_json(record, made)
    return load(out, device=compute.device)


def _stated(args: Flags, side: str) -> str:
    """Return the language that the tokeniser of a model states."""
    if named := stated(args.model / TOKENIZER_CONFIG, f"{side}_lang"):
        return str(named)
    option = {"source": "--src-lang", "target": "--tgt-lang"}[side]
    raise UserError(f"{option}: expected a language such as en, which {args.model} does not state")
