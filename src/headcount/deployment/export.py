"""A model written out as a folder that has all that it needs: weights, and what cuts text."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headcount.base.errors import UserError
from headcount.base.files import check_replaceable, whole_folder, write_json
from headcount.base.folders import CODES, SEGMENTATION, SEGMENTERS
from headcount.deployment.agreement import OpenEngine
from headcount.deployment.ctranslate2_export import (
    CTranslate2Engine,
    export,
    padded_heads,
    positions_of,
)
from headcount.deployment.ctranslate2_package import load_ctranslate2
from headcount.deployment.deployed import Deployed
from headcount.deployment.huggingface_engine import HuggingFaceEngine
from headcount.deployment.huggingface_export import form_of_imported, form_of_ours
from headcount.pretrained.imports import imported_files, their_words
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

FORMS = ("headcount", "ctranslate2", "huggingface")
MARK = "export.json"
"""Says that a folder is an export, which another may replace."""


def export_model(
    what: Deployed, form: str, pretrained: Path | None, out: Path, origin: dict[str, Any]
) -> tuple[str, OpenEngine | None]:
    """Write a model in one of `FORMS`, with an `export.json` that describes it.

    Returns what to tell of it, and what opens it in its own program, where that is another.
    `pretrained`: the folder that the model was imported from, which `huggingface` follows. Raises
    UserError for what the form cannot express, and if something else lies at `out`.
    """
    if form not in FORMS:
        raise UserError(f"export: expected one of {', '.join(FORMS)}, found {form!r}")
    if pretrained and form != "huggingface":
        raise UserError(f"--pretrained: expected with --to huggingface alone, found --to {form}")
    what = what.on_cpu()
    if form == "huggingface":
        return _as_huggingface(what, pretrained, out, origin)
    return (_as_headcount if form == "headcount" else _as_ctranslate2)(what, out, origin)


def files_of(
    source: ModelFolder, pair: PairFolder, mask: Sequence[str | Path], pretrained: Path | None
) -> list[Path]:
    """The files that an export is made from."""
    masks = [path for path in map(Path, mask) if path.is_file()]
    theirs = imported_files(pretrained) if pretrained else []
    return [*source.files, *pair.files(), *masks, *theirs]


def _as_headcount(what: Deployed, out: Path, origin: dict[str, Any]) -> tuple[str, None]:
    with _export(out, what, {}, origin) as part:
        ModelFolder(part).save(what.model, dict(what.model.named_parameters()), what.facts())
        _copy_segmenters(what, part, SEGMENTERS)
    size = what.model.grid.size
    return f"{out}: {size} heads, none of them silent; --model {out} needs no --bpe", None


def _as_ctranslate2(
    what: Deployed, out: Path, origin: dict[str, Any]
) -> tuple[str, OpenEngine | None]:
    load_ctranslate2()  # first of all: without it there is nothing to do
    encoder, decoder = padded_heads(what.model)
    sides = what.pair.segmenters()
    src, tgt = (side.vocabulary for side in sides)
    padded = {"encoder": encoder, "decoder": decoder}  # silent ones included
    with _export(out, what, {"heads_a_layer": padded}, origin) as part:
        export(what.model, src, tgt, part)
        _copy_segmenters(what, part, (SEGMENTATION, *CODES))
    told = (
        f"{out}: {encoder} heads in every layer of the encoder, {decoder} in those of the decoder, "
        "silent ones included"
    )
    positions = positions_of(what.model)
    return told, lambda settings: CTranslate2Engine(out, sides, settings, positions)


def _as_huggingface(
    what: Deployed, pretrained: Path | None, out: Path, origin: dict[str, Any]
) -> tuple[str, OpenEngine | None]:
    if pretrained:
        rows = their_words(pretrained, what.pair)
        form = form_of_imported(what.model, what.heads, pretrained, rows)
    else:
        form = form_of_ours(what.model, what.heads)
    facts = {"model_type": form.config["model_type"], "silent_heads": form.silent}
    with _export(out, what, facts, origin) as part:
        form.save(part)
        if pretrained is None:
            _copy_segmenters(what, part, SEGMENTERS)
    prefix, positions = what.pair.prefix(), positions_of(what.model)
    return form.told(out), lambda settings: HuggingFaceEngine(
        out, form.rows, prefix, settings, positions
    )


@contextmanager
def _export(
    out: Path, what: Deployed, facts: dict[str, Any], origin: dict[str, Any]
) -> Iterator[Path]:
    """Folder to write into, which takes the place of nothing but an earlier export."""
    check_replaceable(out, MARK, "an earlier export")
    heads = {kind: list(counts) for kind, counts in what.model.grid.counts.items()}
    with whole_folder(out) as part:
        yield part
        about = {"heads": heads, "positions": positions_of(what.model), **facts}
        write_json(part / MARK, {**about, "provenance": origin})


def _copy_segmenters(what: Deployed, part: Path, names: tuple[str, ...]) -> None:
    for path in what.pair.files(names):
        shutil.copyfile(path, part / path.name)
