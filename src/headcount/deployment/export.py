"""A model written out as a folder that has all that it needs: weights, and what cuts text."""

import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headcount.base.errors import HeadcountError, UserError
from headcount.base.files import (
    check_apart,
    check_replaceable,
    read_json,
    whole_folder,
    write_json,
)
from headcount.base.folders import CODES, SEGMENTATION, SEGMENTERS
from headcount.base.settings.decode import DecodeSettings
from headcount.deployment.agreement import Engine, OpenEngine
from headcount.deployment.ctranslate2_export import (
    CTranslate2Engine,
    export,
    padded_heads,
    positions_of,
)
from headcount.deployment.ctranslate2_package import load_ctranslate2
from headcount.deployment.deployed import Deployed
from headcount.deployment.huggingface_engine import HuggingFaceEngine, folders_own_text
from headcount.deployment.huggingface_export import form_of_imported, form_of_ours
from headcount.pretrained.imports import imported_files, their_words
from headcount.pretrained.segment import LANGUAGE_CODES
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

FORMS = ("headcount", "ctranslate2", "huggingface")
MARK = "export.json"
"""Says that a folder is an export, and lists its files, which another export may replace."""

Check = Callable[[OpenEngine], object]
"""What compares a written model with ours; raises HeadcountError where they differ."""


@dataclass(frozen=True)
class _Written:
    """How a model is written in a form, what to tell of it, and what opens it elsewhere."""

    save: Callable[[Path], None]
    told: str
    facts: dict[str, Any]
    engine: Callable[[Path, DecodeSettings], Engine] | None = None


def export_model(
    what: Deployed,
    form: str,
    pretrained: Path | None,
    out: Path,
    origin: dict[str, Any],
    check: Check | None = None,
) -> str:
    """Write a model in one of `FORMS`, with an `export.json` that describes it.

    Returns what to tell of it. `pretrained`: the folder that the model was imported from, which
    `huggingface` follows. `check` compares the files before the folder has its name, so that a
    folder that fails is not left there. Raises UserError for what the form cannot express, for an
    `out` that is not apart from the inputs, and if it has files that no export wrote.
    """
    if form not in FORMS:
        raise UserError(f"export: expected one of {', '.join(FORMS)}, found {form!r}")
    if pretrained and form != "huggingface":
        raise UserError(f"--pretrained: expected with --to huggingface alone, found --to {form}")
    theirs = [pretrained] if pretrained else []
    check_apart(out, [what.source.path, what.pair.path, *theirs])
    check_replaceable(out, "an earlier export", _listed(out))
    what = what.on_cpu()
    if form == "huggingface":
        written = _as_huggingface(what, pretrained)
    else:
        written = (_as_headcount if form == "headcount" else _as_ctranslate2)(what)
    told = [f"{out}: {written.told}"]
    with whole_folder(out) as part:
        written.save(part)
        _describe(part, what, written.facts, origin)
        if check:
            told.append(_checked(check, written, part, out))
    return "\n".join(told)


def files_of(
    source: ModelFolder, pair: PairFolder, mask: Sequence[str | Path], pretrained: Path | None
) -> list[Path]:
    """The files that an export is made from."""
    masks = [path for path in map(Path, mask) if path.is_file()]
    theirs = imported_files(pretrained) if pretrained else []
    return [*source.files, *pair.files(), *masks, *theirs]


def _as_headcount(what: Deployed) -> _Written:
    def save(part: Path) -> None:
        ModelFolder(part).save(what.model, dict(what.model.named_parameters()), what.facts())
        _copy_segmenters(what, part, SEGMENTERS)

    size = what.model.grid.size
    return _Written(save, f"{size} heads, none of them silent; as --model it needs no --bpe", {})


def _as_ctranslate2(what: Deployed) -> _Written:
    load_ctranslate2()  # first of all: without it there is nothing to do
    encoder, decoder = padded_heads(what.model)
    sides = what.pair.segmenters()
    src, tgt = (side.vocabulary for side in sides)

    def save(part: Path) -> None:
        export(what.model, src, tgt, part)
        _copy_segmenters(what, part, (SEGMENTATION, *CODES))

    told = (
        f"{encoder} heads in every layer of the encoder, {decoder} in those of the decoder, "
        "silent ones included"
    )
    positions = positions_of(what.model)
    facts = {"heads_a_layer": {"encoder": encoder, "decoder": decoder}}
    return _Written(
        save, told, facts, lambda folder, asked: CTranslate2Engine(folder, sides, asked, positions)
    )


def _as_huggingface(what: Deployed, pretrained: Path | None) -> _Written:
    if pretrained:
        rows = their_words(pretrained, what.pair)
        form = form_of_imported(what.model, what.heads, pretrained, rows)
    else:
        form = form_of_ours(what.model, what.heads)

    def save(part: Path) -> None:
        form.save(part)
        if pretrained is None:
            _copy_segmenters(what, part, SEGMENTERS)

    prefix, positions = what.pair.prefix(), form.config["max_position_embeddings"]

    def engine(folder: Path, settings: DecodeSettings) -> Engine:
        found = HuggingFaceEngine(folder, form.rows, prefix, settings, positions)
        if pretrained:
            found.text = folders_own_text(folder, found, what.pair.segmentation()[LANGUAGE_CODES])
        return found

    facts = {"model_type": form.config["model_type"], "silent_heads": form.silent}
    return _Written(save, form.told(), facts | {"positions": positions}, engine)


def _describe(part: Path, what: Deployed, facts: dict[str, Any], origin: dict[str, Any]) -> None:
    """Write `export.json`, with the names of all files that belong to the export."""
    heads = {kind: list(counts) for kind, counts in what.model.grid.counts.items()}
    about = {"heads": heads, "positions": positions_of(what.model), **facts}
    about["files"] = sorted(path.name for path in part.iterdir())
    write_json(part / MARK, {**about, "provenance": origin})


def _checked(check: Check, written: _Written, part: Path, out: Path) -> str:
    """Compare what was written aside; messages have the name that the folder will have."""
    try:
        return str(check(lambda settings: written.engine(part, settings)))
    except HeadcountError as fault:
        raise type(fault)(str(fault).replace(str(part), str(out))) from fault


def _listed(out: Path) -> Iterable[str]:
    """Return the names of the files that an earlier export wrote there."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return [*read_json(out / MARK)["files"], MARK]
    return []


def _copy_segmenters(what: Deployed, part: Path, names: tuple[str, ...]) -> None:
    for path in what.pair.files(names):
        shutil.copyfile(path, part / path.name)
