"""Export of models for CTranslate2 and Hugging Face's library."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headcount.base.errors import HeadcountError, UserError
from headcount.base.folders import CODES, SEGMENTATION, SEGMENTERS
from headcount.base.settings.decode import DecodeSettings
from headcount.deployment.export import Deployed, Form, copy_segmenters, own_form, write_export
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount_hf.export.ctranslate2_export import (
    export,
    load_ctranslate2,
    padded_heads,
    positions_of,
)
from headcount_hf.export.ctranslate2_search import CTranslate2Search
from headcount_hf.export.exported import Exported, OpenExported
from headcount_hf.export.huggingface_export import form_of_imported, form_of_ours
from headcount_hf.export.huggingface_search import HuggingFaceSearch, own_sides
from headcount_hf.pretrained.imports import imported_files, their_words
from headcount_hf.pretrained.segment import LANGUAGE_CODES

FORMS = ("headcount", "ctranslate2", "huggingface")

Check = Callable[[OpenExported], object]
"""Comparison of a written model with ours, which raises HeadcountError where they differ."""


@dataclass(frozen=True)
class _Opened(Form):
    """A form, and a function that opens a folder of it in its program."""

    open: Callable[[Path, DecodeSettings], Exported] | None = None


def export_model(
    what: Deployed,
    form: str,
    pretrained: Path | None,
    out: Path,
    origin: dict[str, Any],
    check: Check | None = None,
) -> str:
    """Write a model in one of `FORMS`, as `write_export` does, and return a summary."""
    if form not in FORMS:
        raise UserError(f"export: expected one of {', '.join(FORMS)}, found {form!r}")
    if pretrained and form != "huggingface":
        raise UserError(f"--pretrained: expected with --to huggingface alone, found --to {form}")
    what = what.on_cpu()
    if form == "headcount":
        return write_export(what, own_form(what), out, origin)
    hugging_face = form == "huggingface"
    written = _as_huggingface(what, pretrained) if hugging_face else _as_ctranslate2(what)

    def checked(part: Path) -> object:
        """Compare the files before the folder has its name, with this name in messages."""
        try:
            return check(lambda settings: written.open(part, settings))
        except HeadcountError as fault:
            raise type(fault)(str(fault).replace(str(part), str(out))) from fault

    theirs = [pretrained] if pretrained else []
    return write_export(what, written, out, origin, theirs, checked if check else None)


def files_of(
    source: ModelFolder, pair: PairFolder, mask: Sequence[str | Path], pretrained: Path | None
) -> list[Path]:
    """Return the files that an export is made from."""
    masks = [path for path in map(Path, mask) if path.is_file()]
    theirs = imported_files(pretrained) if pretrained else []
    return [*source.files, *pair.files(), *masks, *theirs]


def _as_ctranslate2(what: Deployed) -> _Opened:
    load_ctranslate2()  # before any other work
    encoder, decoder = padded_heads(what.model)
    sides, positions = what.pair.segmenters(), positions_of(what.model)

    def save(part: Path) -> None:
        export(what.model, *(side.vocabulary for side in sides), part)
        copy_segmenters(what, part, (SEGMENTATION, *CODES))

    return _Opened(
        save,
        f"{encoder} heads in every layer of the encoder, {decoder} in those of the decoder, masked "
        "ones included",
        {"heads_a_layer": {"encoder": encoder, "decoder": decoder}, "positions": positions},
        lambda folder, settings: CTranslate2Search(folder, sides, settings, positions),
    )


def _as_huggingface(what: Deployed, pretrained: Path | None) -> _Opened:
    if pretrained:
        rows = their_words(pretrained, what.pair)
        form = form_of_imported(what.model, what.heads, pretrained, rows)
    else:
        form = form_of_ours(what.model, what.heads)

    def save(part: Path) -> None:
        form.save(part)
        if pretrained is None:
            copy_segmenters(what, part, SEGMENTERS)

    positions = form.theirs.config.max_position_embeddings

    def opened(folder: Path, settings: DecodeSettings) -> Exported:
        search = HuggingFaceSearch(folder, what.pair.segmenters(), settings, positions, form.rows)
        if pretrained:
            search.own_sides = own_sides(search, folder, what.pair.segmentation()[LANGUAGE_CODES])
        return search

    facts = {"model_type": form.model_type, "silent_heads": form.silent, "positions": positions}
    return _Opened(save, form.summary(), facts, opened)
