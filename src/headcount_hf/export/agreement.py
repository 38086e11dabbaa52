"""Comparison of an exported model with this project's own beam search."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch

from headcount.base.errors import HeadcountError, UserError
from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import Ids, ParallelText, collate
from headcount.data.text import read_clean
from headcount.model.loss import token_losses
from headcount.model.transformer import Transformer
from headcount.search.beam_search import Translation, translate
from headcount.search.translation import Found
from headcount.store.pair_folder import PairFolder
from headcount_hf.export.exported import Exported, OpenExported, Sides

NATS = 1e-3  # largest difference of a token's log-probability between two programs in fp32

NO_TOKENIZER = "text was cut into subwords by this project, as the folder has no tokenizer"


@dataclass(frozen=True)
class Agreement:
    """Agreement of an exported model with this project's search, without length penalty."""

    sentences: int  # compared ones
    same: int  # equal translations
    left_out: int  # empty sentences, and translations of the longest length allowed
    gap: float  # largest difference of a translation's log-probability, in nats per token
    texts: str = NO_TOKENIZER  # comparison of texts by the folder's tokenizer, in words

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

    @property
    def same(self) -> bool:
        """True if both translations have the same ids."""
        return self.ours.ids == self.theirs.ids


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
    scores = exported.score([s.source for s in sentences], [s.ours.ids for s in sentences])
    gap = max(
        abs(score - sentence.ours.log_probability) / (len(sentence.ours.ids) + 1)
        for score, sentence in zip(scores, sentences, strict=True)
    )
    same, size = sum(sentence.same for sentence in sentences), len(sentences)
    agreement = Agreement(size, same, len(lines) - size, gap)
    if gap > NATS:
        raise HeadcountError(f"{text}: {agreement}; expected the same model: this is a bug")
    for sentence in sentences:
        if not sentence.same:
            _refuse_worse(model, sentence)
    if exported.own_sides is None:
        return agreement
    return replace(agreement, texts=_compare_texts(sentences, pair, exported.own_sides))


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
        if ids and not best.capped and len(best.ids) < exported.positions
    ]
    if not ended:
        raise UserError(
            f"{text}: expected a sentence whose translation this model ends by itself, found none; "
            "take another text, or a model with more training"
        )
    theirs = exported.translate([sources[n] for n in ended], lambda sentences: None)
    return [
        _Sentence(f"{text}:{n + 1}", lines[n], sources[n], ours[n], other)
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
    words = len(theirs.ids) + (not theirs.capped)  # a translation that was cut off has no end
    losses = token_losses(model, collate(ParallelText([sentence.source], [theirs.ids]), [0]))
    likely = -losses[:words].double().sum().item()
    slack = NATS * (len(ours.ids) + 1 + words)
    if likely < ours.log_probability - slack:
        raise HeadcountError(
            f"{sentence.place}: by this model the export's translation has a log-probability of "
            f"{likely:.4f} nats, ours {ours.log_probability:.4f}; expected at most {slack:.4f} "
            "less: this is a bug"
        )
