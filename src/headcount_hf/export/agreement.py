"""An exported model held against this project's own beam search."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch

from headcount.base.errors import HeadcountError, UserError
from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import Ids, ParallelText, collate
from headcount.data.bpe import AnySegmenter
from headcount.data.text import read_clean
from headcount.model.loss import token_losses
from headcount.model.transformer import Transformer
from headcount.search.beam_search import Translation, translate
from headcount.search.translation import Found
from headcount.store.pair_folder import PairFolder
from headcount_hf.export.exported import Exported

NATS = 1e-3  # by which one token's log-probability may differ between two programs in fp32


NO_TOKENIZER = "the folder has no tokenizer of that program, so text was cut into subwords by ours"
OpenExported = Callable[[DecodeSettings], Exported]


@dataclass(frozen=True)
class Agreement:
    """Agreement of an exported model with this project's search, without length penalty."""

    sentences: int  # that were compared
    same: int  # of their translations
    left_out: int  # empty ones, and those that our search cuts off at the longest output allowed
    gap: float  # largest difference of a translation's log-probability, in nats per token
    texts: str = NO_TOKENIZER  # what came out of text by the folder's tokenizer, in words

    @property
    def share(self) -> float:
        """Return the share of the compared sentences that both programs translate alike, 0 to 1."""
        return self.same / self.sentences

    def __str__(self) -> str:
        return (
            f"{self.same} of {self.sentences} translations are the same ({self.share:.1%}), "
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
        """Return whether both translations have the same ids."""
        return self.ours.ids == self.theirs.ids


def check_export(
    model: Transformer,
    pair: PairFolder,
    open_exported: OpenExported,
    text: Path,
    settings: DecodeSettings,
) -> Agreement:
    """Compare an exported model with this one, in fp32 on a text.

    The export must give our translations our log-probabilities, and its own translations must be
    no less likely by our model than ours, or HeadcountError is raised. They may still differ where
    two are about as likely: CTranslate2 takes padding and start out before the softmax, ours after
    it; and where an export has not ended at its longest output, at which ours must end. Both search
    without length penalty: ours divides by ((5 + length) / 6)^α, others by length^α, and only at
    α = 0 do both stop at the same point. Raises UserError if the text has no sentence that the
    model ends by itself.
    """
    exported = open_exported(settings.model_copy(update={"length_penalty": 0.0}))
    lines = read_clean(text)
    sentences = _translate_both(model, pair, exported, text, lines)
    scores = exported.score([each.source for each in sentences], [s.ours.ids for s in sentences])
    gap = max(
        abs(score - each.ours.log_probability) / (len(each.ours.ids) + 1)
        for score, each in zip(scores, sentences, strict=True)
    )
    same, size = sum(each.same for each in sentences), len(sentences)
    agreement = Agreement(size, same, len(lines) - size, gap)
    if gap > NATS:
        raise HeadcountError(f"{text}: {agreement}; expected the same model: this is a bug")
    for each in sentences:
        if not each.same:
            _refuse_worse(model, each)
    if exported.own_sides is None:
        return agreement
    return replace(agreement, texts=_compare_texts(sentences, pair, *exported.own_sides))


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
            "name another text, or a model trained for longer"
        )
    theirs = exported.translate([sources[n] for n in ended], lambda sentences: None)
    return [
        _Sentence(f"{text}:{n + 1}", lines[n], sources[n], ours[n], other)
        for n, other in zip(ended, theirs, strict=True)
    ]


def _compare_texts(
    sentences: list[_Sentence], pair: PairFolder, src: AnySegmenter, tgt: AnySegmenter
) -> str:
    """Say how many texts are the same, by the tokenizer in the export's folder, `src` and `tgt`.

    Raises HeadcountError for another text where ids are alike.
    """
    ours, same, otherwise = pair.segmenters()[1], 0, []
    for each in sentences:
        mine, other = ours.decode(each.ours.ids), tgt.decode(each.theirs.ids)
        if src.encode(each.line) != each.source:
            otherwise.append(each.place)
        elif each.same and mine != other:
            raise HeadcountError(
                f"{each.place}: by the tokenizer in its folder the export writes {other!r}, "
                f"expected {mine!r} as ours, from the same ids: this is a bug"
            )
        else:
            same += mine == other
    text = f"{same} of {len(sentences)} texts are the same by the tokenizer in the folder"
    if otherwise:
        text += f"; it cuts {len(otherwise)} lines otherwise than ours, first {otherwise[0]}"
    return text + (", aside from the code that they begin with" if ours.prefix else "")


@torch.inference_mode()
def _refuse_worse(model: Transformer, each: _Sentence) -> None:
    """Raise HeadcountError if their translation is less likely than ours by our own model.

    Each token's log-probability may differ by `NATS` in the program that chose, in both
    translations; by more than that it had no reason to prefer its own. (A beam that must drop one
    of two equally likely beginnings could end worse: too rare to allow for.)
    """
    ours, theirs = each.ours, each.theirs
    # With its end unless it was cut off: a search may stop short of one.
    words = len(theirs.ids) + (not theirs.capped)
    losses = token_losses(model, collate(ParallelText([each.source], [theirs.ids]), [0]))
    likely = -losses[:words].double().sum().item()
    slack = NATS * (len(ours.ids) + 1 + words)
    if likely < ours.log_probability - slack:
        raise HeadcountError(
            f"{each.place}: by this model the export's translation has a log-probability of "
            f"{likely:.4f} nats, ours {ours.log_probability:.4f}; expected at most {slack:.4f} "
            "less, from the same model and as wide a beam: this is a bug"
        )
