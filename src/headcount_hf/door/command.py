"""The command `headcount`: which heads of a model matter, without them, translations, exports.

Experiments with several models run by Snakemake instead.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from headcount.base.command import Flags, SubCommand, flag, path, run_one
from headcount.base.errors import UserError
from headcount.base.files import write_text
from headcount.base.ranking import least_heads
from headcount.base.settings.decode import DecodeSettings, GenerateSettings, TranslateSettings
from headcount.base.settings.section import Compute
from headcount.data.lines import clean_lines
from headcount.data.text import read_clean
from headcount.heads.importance import read_importance
from headcount.library.measured import check_pairs
from headcount.library.model import Model
from headcount.library.report import require_packages
from headcount.search.translation import translate_lines, translate_stream
from headcount_hf.door.opening import OPENED, open_any
from headcount_hf.export.aligned import Aligned
from headcount_hf.export.ctranslate2_search import open_search
from headcount_hf.export.export import CUT, FORMS, check_export, export_model
from headcount_hf.hooks.opened import is_hooked


def heads(args: Flags, compute: Compute) -> None:
    """Measure which heads of a model matter and which may be removed, and write a report.

    The same command goes on after a stop. Without --threads it uses all processors.
    """
    require_packages()
    from headcount_hf.door.answer import measure_heads  # needs some of them

    texts = read_clean(args.source), read_clean(args.reference)
    check_pairs(*texts)  # before a model is imported
    links = None if args.links is None else list(clean_lines(args.links))
    model, name = open_any(args, compute, args.out), args.model.resolve().name
    paths = args.source, args.reference
    measure_heads(model, texts, paths, args.out, links, args.sentences, name)


def prune(args: Flags, compute: Compute) -> None:
    """Write a model without the heads of --mask, or without the least important share."""
    by_rank = args.importance is not None
    if by_rank == bool(args.mask) or by_rank != (args.share is not None):
        raise UserError("expected --mask, or --importance with --share")
    with TemporaryDirectory() as work:
        model = open_any(args, compute, Path(work))
        mask = args.mask or _least(model, args.importance, args.share)
        smaller = model.without(mask)
        write = smaller.save if isinstance(model, Model) else smaller.export
        print(write(args.out))


def translate(args: Flags, decode: TranslateSettings) -> None:
    """Translate lines of --source, or of standard input, to standard output."""
    with TemporaryDirectory() as work:
        model = open_any(args, decode, Path(work))
        if not isinstance(model, Model):
            lines = read_clean(args.source or Path("/dev/stdin"))
            said = model.translate(lines, args.mask, _generated(decode))
        else:
            search = open_search(model.source, model.pair, args.mask, decode)
            if args.source is None:
                return translate_stream(search, sys.stdin.buffer, sys.stdout.buffer)
            said = translate_lines(search, read_clean(args.source), place=str(args.source))[0]
        print("".join(f"{line}\n" for line in said), end="")


def export(args: Flags, decode: DecodeSettings) -> None:
    """Write a model for another program, as `scripts/export.py` does."""
    with TemporaryDirectory() as work:
        model = open_any(args, decode, Path(work))
        aligned = Aligned.read(args.alignment) if args.alignment else None
        if not isinstance(model, Model):
            if args.cut_vocabulary:
                raise UserError(f"{args.model}: --cut-vocabulary needs a model that is imported")
            heads = aligned.heads if aligned else ()
            return print(model.without(args.mask).export(args.out, args.to, alignment=heads))
        theirs = args.model if is_hooked(args.model) and args.to == "huggingface" else None
        deployed = model.without(args.mask) if args.mask else model
        if args.cut_vocabulary:
            if theirs:
                raise UserError(
                    "--cut-vocabulary: expected --to ctranslate2 or headcount, found huggingface, "
                    f"where {args.model} keeps its tokenizer with all pieces"
                )
            deployed = deployed.with_pieces_of(*args.cut_vocabulary)
        check = partial(check_export, deployed, text=args.check, settings=decode)
        given = deployed, args.to, args.pretrained or theirs, args.out, args.origin(decode=None)
        print(export_model(*given, check if args.check else None, aligned))


def align(args: Flags, compute: Compute) -> None:
    """Link the words of sentence pairs, or of sources and their translations.

    Each line has a pair's links such as `0-0 1-2`, source word first, counted from 0.
    """
    with TemporaryDirectory() as work:
        model = open_any(args, compute, Path(work))
        if not isinstance(model, Model):
            raise UserError(f"{args.model}: expected a model that can be imported")
        sources = read_clean(args.source)
        targets = args.target and read_clean(args.target)
        aligned = model.align(sources, targets, args.heads or None)
        said, links = (None, aligned) if targets else aligned
        lines = [" ".join(f"{s}-{t}" for s, t in pair) for pair in links]
        if said:
            lines = [f"{line}\t{of_line}" for line, of_line in zip(said, lines, strict=True)]
        text = "".join(f"{line}\n" for line in lines)
        write_text(args.out, text) if args.out else print(text, end="")


def _least(model: Any, importance: Path, share: float) -> list[str]:
    """Return the addresses of the least important share of the heads, as `headcount heads` does."""
    grid = model.module.grid
    folder = model.source if isinstance(model, Model) else model.folder
    values = read_importance(importance, folder, grid)
    if not 0 < share <= 100:
        raise UserError(f"--share: expected a percentage above 0 and up to 100, found {share:g}")
    return [model.heads[place] for place in least_heads(values, share)]


def _generated(decode: TranslateSettings) -> GenerateSettings:
    """Return settings of a model that stays in its library. Raises UserError for others."""
    given = decode.model_dump(include=decode.model_fields_set)
    if others := given.keys() - GenerateSettings.model_fields.keys():
        names = ", ".join(f"--{key.replace('_', '-')}" for key in sorted(others))
        raise UserError(f"{names}: not for a model that stays in the Hugging Face library")
    return GenerateSettings(**given)


_TEXT = flag("--sentences", "pairs on which heads are measured", type=int, default=500)
COMMANDS: dict[str, SubCommand] = {
    "heads": SubCommand(heads, (
        *OPENED, "--source", path("--reference", "translations of the source"),
        path("[--links]", "links between words, such as 0-0 1-2, a line for each pair"), _TEXT,
    ), folder="folder to write"),
    "prune": SubCommand(prune, (
        *OPENED, "--mask", "[--importance]",
        flag("[--share]", "percent of the heads to remove, with --importance", type=float),
    ), folder="folder to write"),
    "translate": SubCommand(translate, (*OPENED, "--mask", "[--source]")),
    "export": SubCommand(export, (
        *OPENED, "--mask",
        flag("--to", "format of the model", choices=FORMS, default="ctranslate2"),
        path("[--pretrained]", "imported model, whose family and tokenizer are kept"),
        path("[--check]", "text to translate in both ways, a line each"), CUT,
        flag("--alignment", "heads that align, such as dec_enc.1.3", nargs="+", default=[]),
    ), folder="folder to write"),
    "align": SubCommand(align, (
        *OPENED, "--source", path("[--target]", "translations; without: the model's own"),
        flag("--heads", "heads whose mean counts", nargs="+", default=[]),
        path("[--out]", "file to write; without: standard output"),
    )),
}  # fmt: skip
main: Callable[[], None] = partial(run_one, __doc__, COMMANDS)
"""Run the command."""
