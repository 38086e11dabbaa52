"""Export of models for CTranslate2 and Hugging Face's library, and comparison with our search."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from headcount.base.errors import HeadcountError, UserError
from headcount.base.folders import CODES, SEGMENTATION, SEGMENTERS
from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import Ids, ParallelText, collate
from headcount.data.text import read_clean
from headcount.deployment.export import Deployed, Form, copy_segmenters, own_form, write_export
from headcount.model.loss import token_losses
from headcount.model.transformer import Transformer
from headcount.search.beam_search import Translation, translate
from headcount.search.translation import Found
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount_hf.export.ctranslate2_model import (
    CTranslate2Search,
    export,
    export_shape,
    load_ctranslate2,
)
from headcount_hf.export.exported import Exported, OpenExported, Sides
from headcount_hf.export.huggingface_export import form_of_imported, form_of_ours
from headcount_hf.export.huggingface_search import HuggingFaceSearch, own_sides
from headcount_hf.pretrained.imports import imported_files, their_words
from headcount_hf.pretrained.segment import LANGUAGE_CODES

FORMS = ("headcount", "ctranslate2", "huggingface")
NATS = 1e-3  # largest difference of a token's log-probability between two programs in fp32

_Opener = Callable[[Path, DecodeSettings], Exported]  # opens a folder in its program


@dataclass(frozen=True)
class Agreement:
    """Agreement of an exported model with this project's search, without length penalty."""

    sentences: int  # compared ones
    same: int  # equal translations
    left_out: int  # empty sentences, and translations of the longest length allowed
    gap: float  # largest difference of a translation's log-probability, in nats per token
    texts: str = "text was cut into subwords by this project, as the folder has no tokenizer"

    def __str__(self) -> str:
        return (
            f"{self.same} of {self.sentences} translations are the same "
            f"({self.same / self.sentences:.1%}), "
            f"log-probabilities within {self.gap:.1e} nats a token; left out as empty or without "
            f"an end: {self.left_out}; {self.texts}"
        )


class _Sentence(NamedTuple):
    """A sentence that our search ends by itself, and its translations."""

    place: str
    line: str
    source: Ids
    ours: Translation
    theirs: Found
    same: bool  # True if both translations have the same ids


def check_export(
    model: Transformer,
    pair: PairFolder,
    open_exported: OpenExported,
    text: Path,
    settings: DecodeSettings,
) -> Agreement:
    """Compare an exported model with this one, in fp32 and without length penalty, on a text.

    Raises HeadcountError unless both give our translations the same log-probabilities, and the
    export's own translations are as likely by our model. Equally likely translations may differ:
    CTranslate2 excludes padding and start before the softmax, this project after it. Raises
    UserError if our search ends no sentence of the text by itself.
    """
    exported = open_exported(settings.model_copy(update={"length_penalty": 0.0}))
    lines = read_clean(text)
    sentences = _translate_both(model, pair, exported, text, lines)
    ours, size = [sentence.ours for sentence in sentences], len(sentences)
    scores = exported.score([s.source for s in sentences], [best.ids for best in ours])
    gap = max(
        abs(score - best.log_probability) / (len(best.ids) + 1)
        for score, best in zip(scores, ours, strict=True)
    )
    agreement = Agreement(size, sum(s.same for s in sentences), len(lines) - size, gap)
    if gap > NATS:
        raise HeadcountError(f"{text}: {agreement}; expected the same model: this is a bug")
    for sentence in sentences:
        if not sentence.same:
            _refuse_worse(model, sentence)
    if exported.own_sides:
        agreement = replace(agreement, texts=_compare_texts(sentences, pair, exported.own_sides))
    return agreement


def _translate_both(
    model: Transformer, pair: PairFolder, exported: Exported, text: Path, lines: list[str]
) -> list[_Sentence]:
    """Return the sentences that our search ends by itself. Raises UserError if there is none."""
    src, tgt = pair.segmenters()
    longest = min(exported.settings.max_source, exported.positions - 1)
    plain = exported.settings.model_copy(update={"max_source": longest})
    sources = [src.cut_off(src.encode(line), longest) for line in lines]
    ours = translate(model, sources, plain, prefix=tgt.prefix)
    ended = [
        number
        for number, (ids, best) in enumerate(zip(sources, ours, strict=True))
        if ids and not best.hit_max_length and len(best.ids) < exported.positions
    ]
    if not ended:
        raise UserError(
            f"{text}: expected a sentence whose translation this model ends by itself, found none; "
            "take another text, or a model with more training"
        )
    theirs = exported.translate([sources[n] for n in ended], lambda sentences: None)
    return [
        _Sentence(f"{text}:{n + 1}", lines[n], sources[n], ours[n], other, ours[n].ids == other.ids)
        for n, other in zip(ended, theirs, strict=True)
    ]


def _compare_texts(sentences: list[_Sentence], pair: PairFolder, theirs: Sides) -> str:
    """Return the number of equal texts in words. Raises HeadcountError for a wrong text."""
    ours, (src, tgt), same, cut_otherwise = pair.segmenters()[1], theirs, 0, []
    for sentence in sentences:
        mine, other = ours.decode(sentence.ours.ids), tgt.decode(sentence.theirs.ids)
        if src.encode(sentence.line) != sentence.source:
            cut_otherwise.append(sentence.place)
        elif sentence.same and mine != other:
            raise HeadcountError(
                f"{sentence.place}: expected {mine!r}, found {other!r} by the tokenizer in the "
                "export's folder, from the same ids: this is a bug"
            )
        else:
            same += mine == other
    text = f"{same} of {len(sentences)} texts are the same by the tokenizer in the folder"
    if cut_otherwise:
        text += f"; it cuts {len(cut_otherwise)} lines in another way, first {cut_otherwise[0]}"
    return text + (", aside from the code that they begin with" if ours.prefix else "")


@torch.inference_mode()
def _refuse_worse(model: Transformer, sentence: _Sentence) -> None:
    """Raise HeadcountError if our model finds their translation less likely than ours."""
    ours, theirs = sentence.ours, sentence.theirs
    words = len(theirs.ids) + (
        not theirs.hit_max_length
    )  # a translation that was cut off has no end
    losses = token_losses(model, collate(ParallelText([sentence.source], [theirs.ids]), [0]))
    likely = -losses[:words].double().sum().item()
    slack = NATS * (len(ours.ids) + 1 + words)
    if likely < ours.log_probability - slack:
        raise HeadcountError(
            f"{sentence.place}: by this model the export's translation has a log-probability of "
            f"{likely:.4f} nats, ours {ours.log_probability:.4f}; expected at most {slack:.4f} "
            "less: this is a bug"
        )


def export_model(
    what: Deployed,
    to: str,
    pretrained: Path | None,
    out: Path,
    origin: dict[str, Any],
    check: Callable[[OpenExported], object] | None = None,
) -> str:
    """Write a model in one of `FORMS`, as `write_export` does, and return a summary.

    `check` raises HeadcountError where the written model differs from ours.
    """
    if to not in FORMS:
        raise UserError(f"export: expected one of {', '.join(FORMS)}, found {to!r}")
    if pretrained and to != "huggingface":
        raise UserError(f"--pretrained: expected with --to huggingface alone, found --to {to}")
    what = what.on_cpu()
    if to == "headcount":
        return write_export(what, own_form(what), out, origin)
    hugging_face = to == "huggingface"
    form, opener = _as_huggingface(what, pretrained) if hugging_face else _as_ctranslate2(what)
    theirs = [pretrained] if pretrained else []
    checked = (lambda part: check(partial(opener, part))) if check else None
    return write_export(what, form, out, origin, theirs, checked)


def files_of(
    source: ModelFolder, pair: PairFolder, mask: Sequence[str | Path], pretrained: Path | None
) -> list[Path]:
    """Return the files that an export is made from."""
    masks = [path for path in map(Path, mask) if path.is_file()]
    theirs = imported_files(pretrained) if pretrained else []
    return [*source.files, *pair.files(), *masks, *theirs]


def _as_ctranslate2(what: Deployed) -> tuple[Form, _Opener]:
    load_ctranslate2()  # before any other work
    encoder, decoder, positions = export_shape(what.model)
    sides = what.pair.segmenters()

    def save(part: Path) -> None:
        export(what.model, *(side.vocabulary for side in sides), part)
        copy_segmenters(what, part, (SEGMENTATION, *CODES))

    summary = f"{encoder} heads in every encoder layer, {decoder} in every decoder layer, "
    facts = {"heads_a_layer": {"encoder": encoder, "decoder": decoder}, "positions": positions}

    def opened(folder: Path, settings: DecodeSettings) -> Exported:
        return CTranslate2Search(folder, sides, settings, positions)

    return Form(save, summary + "masked ones included", facts), opened


def _as_huggingface(what: Deployed, pretrained: Path | None) -> tuple[Form, _Opener]:
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

    facts = {
        "model_type": form.theirs.config.model_type,
        "silent_heads": form.silent,
        "positions": positions,
    }
    return Form(save, form.summary(), facts), opened
