"""Export of models for CTranslate2 and Hugging Face's library, and comparison with our search."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from headcount.base.command import path
from headcount.base.errors import HeadcountError, UserError
from headcount.base.folders import CODES, SEGMENTATION, SEGMENTERS
from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import Ids, ParallelText
from headcount.data.text import read_clean
from headcount.deployment.export import Deployed, Form, own_form, write_export
from headcount.model.loss import token_losses
from headcount.model.transformer import Transformer
from headcount.search.beam_search import Translation, translate
from headcount_hf.export.aligned import Aligned, with_list
from headcount_hf.export.ctranslate2_model import (
    FIRST_OF_LAST,
    export,
    export_shape,
    load_ctranslate2,
    zero_units,
)
from headcount_hf.export.exported import Best
from headcount_hf.export.huggingface_export import form_of_imported, form_of_ours
from headcount_hf.export.measured import open_exported
from headcount_hf.pretrained.imports import their_words

FORMS = ("headcount", "ctranslate2", "huggingface")
CUT = path(
    "--cut-vocabulary",
    "texts whose pieces are kept, with special pieces and marks; all others become unknown",
    nargs="+",
    default=[],
)
"""Flag of commands that export."""
WORSE = 0.05  # largest share of translations of another program that this model finds less likely
NATS = 1e-3  # largest difference of a token's log-probability between two programs in fp32


@dataclass(frozen=True)
class Agreement:
    """Agreement of an exported model with this project's search, without length penalty."""

    sentences: int  # compared ones
    same: int  # equal translations
    left_out: int  # empty sentences, and translations of the longest length allowed
    gap: float  # largest difference of a translation's log-probability, in nats per token
    worse: int = 0  # translations of the other program that are less likely than ours

    def __str__(self) -> str:
        return (
            f"{self.same} of {self.sentences} translations are the same "
            f"({self.same / self.sentences:.1%}), "
            f"log-probabilities within {self.gap:.1e} nats a token; less likely ones of the "
            f"export: {self.worse}; left out as empty or without an end: {self.left_out}"
        )


def check_export(what: Deployed, folder: Path, text: Path, settings: DecodeSettings) -> Agreement:
    """Compare a model with its export, in fp32 and without length penalty, on a text.

    Raises HeadcountError unless both give our translations the same log-probabilities, and all but
    `WORSE` of the export's own translations are as likely by our model. Equally likely ones may
    differ. A beam search may drop another hypothesis after a rounding difference.
    """
    src, tgt = what.pair.segmenters()
    plain = settings.model_copy(update={"length_penalty": 0.0})
    exported = open_exported(folder, what.pair, (src, tgt), plain)
    longest = min(settings.max_source, exported.positions - 1)
    sources = [src.cut_off(src.encode(line), longest) for line in read_clean(text)]
    translations = translate(what.model, sources, plain, prefix=tgt.prefix)
    ended = [
        (f"{text}:{number}", ids, best)
        for number, (ids, best) in enumerate(zip(sources, translations, strict=True), start=1)
        if ids and not best.hit_max_length and len(best.ids) < exported.positions
    ]
    if not ended:
        raise UserError(
            f"{text}: expected a sentence whose translation this model ends by itself, found none; "
            "take another text, or a model with more training"
        )
    places, compared, ours = zip(*ended, strict=True)
    theirs = exported.translate(list(compared))
    scores = exported.score(list(compared), [best.ids for best in ours])
    gap = max(
        abs(score - best.log_probability) / (len(best.ids) + 1)
        for score, best in zip(scores, ours, strict=True)
    )
    same = sum(best.ids == other.ids for best, other in zip(ours, theirs, strict=True))
    worse = [
        place
        for place, *given in zip(places, compared, ours, theirs, strict=True)
        if _is_worse(what.model, *given)
    ]
    left_out = len(sources) - len(ended)
    agreement = Agreement(len(ended), same, left_out, gap, len(worse))
    if gap > NATS:
        raise HeadcountError(f"{text}: {agreement}; expected the same model: this is a bug")
    if len(worse) > WORSE * len(ended):
        raise HeadcountError(
            f"{worse[0]}: {agreement}; expected at most {WORSE:.0%} less likely ones, this is the "
            "first: a bug, unless a text of more sentences passes"
        )
    return agreement


@torch.inference_mode()
def _is_worse(model: Transformer, source: Ids, ours: Translation, theirs: Best) -> bool:
    """Return whether our model finds their translation less likely than ours."""
    words = len(theirs.ids) + (not theirs.hit_max_length)  # one that was cut off has no end
    losses = token_losses(model, ParallelText([source], [theirs.ids]).batch([0]))
    likely = -losses[:words].double().sum().item()
    return likely < ours.log_probability - NATS * (len(ours.ids) + 1 + words)


def export_model(
    what: Deployed,
    to: str,
    pretrained: Path | None,
    out: Path,
    origin: dict[str, Any],
    check: Callable[[Path], object] | None = None,
    aligned: Aligned | None = None,
) -> str:
    """Write a model in one of `FORMS`, as `write_export` does, and return a summary."""
    if to not in FORMS:
        raise UserError(f"export: expected one of {', '.join(FORMS)}, found {to!r}")
    if pretrained and to != "huggingface":
        raise UserError(f"--pretrained: expected with --to huggingface alone, found --to {to}")
    if pretrained and what.cut:
        raise UserError(
            "--cut-vocabulary: expected without --pretrained, whose tokenizer has all pieces; "
            "use --to ctranslate2, or --to huggingface alone"
        )
    if aligned and to == "headcount":
        raise UserError("alignment: expected with ctranslate2 or huggingface, found headcount")
    what = what.on_cpu()
    if to == "headcount":
        return write_export(what, own_form(what), out, origin)
    if to == "ctranslate2":
        what = aligned.first_in(what) if aligned else what
        form = _as_ctranslate2(what, aligned.shown_in(what) if aligned else FIRST_OF_LAST)
    else:
        form = _as_huggingface(what, pretrained)
    if aligned:
        here = [what.place(head) for head in aligned.heads]
        if to == "huggingface":  # where masked heads have their places
            pairs = zip(here, aligned.heads, strict=True)
            here = [place._replace(head=head.head) for place, head in pairs]
        form = with_list(form, here, aligned)
    return write_export(what, form, out, origin, [pretrained] if pretrained else [], check)


def _as_ctranslate2(what: Deployed, shown: tuple[int, int]) -> Form:
    load_ctranslate2()  # before any other work
    encoder, decoder, positions = export_shape(what.model)
    summary = f"{encoder} heads in every encoder layer, {decoder} in every decoder layer, "
    summary += f"masked ones included; {zero_units(what.model)} zeros among feed-forward units"
    facts = {"heads_a_layer": {"encoder": encoder, "decoder": decoder}, "positions": positions}
    facts["zero_feed_forward_units"] = zero_units(what.model)
    save = partial(export, what.model, *what.pair.vocabularies(), alignment=shown)
    return Form(save, (SEGMENTATION, *CODES), summary, facts)


def _as_huggingface(what: Deployed, pretrained: Path | None) -> Form:
    if pretrained:
        rows = their_words(pretrained, what.pair)
        form = form_of_imported(what.model, what.originals, pretrained, rows)
    else:
        form = form_of_ours(what.model, what.originals)
    config = form.theirs.config
    facts = {"model_type": config.model_type, "silent_heads": form.silent}
    facts["zero_feed_forward_units"] = form.zero_units
    facts["positions"] = config.max_position_embeddings
    return Form(form.save, () if pretrained else SEGMENTERS, form.summary(), facts)
