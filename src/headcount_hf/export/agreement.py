"""An exported model held against this project's own beam search."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

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
    src, tgt = pair.segmenters()
    exported = open_exported(settings.model_copy(update={"length_penalty": 0.0}))
    longest = min(settings.max_source, exported.positions - 1)
    plain = settings.model_copy(update={"length_penalty": 0.0, "max_source": longest})
    lines = read_clean(text)
    sources = [src.cut_off(src.encode(line), plain.max_source) for line in lines]
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
    read, ours = [sources[n] for n in ended], [ours[n] for n in ended]
    scores = exported.score(read, [best.ids for best in ours])
    gap = max(
        abs(score - best.log_probability) / (len(best.ids) + 1)
        for score, best in zip(scores, ours, strict=True)
    )
    theirs = exported.translate(read, lambda sentences: None)
    same = [mine.ids == other.ids for mine, other in zip(ours, theirs, strict=True)]
    agreement = Agreement(len(ours), sum(same), len(sources) - len(ours), gap)
    if gap > NATS:
        raise HeadcountError(f"{text}: {agreement}; expected the same model: this is a bug")
    for number, source, mine, other in zip(ended, read, ours, theirs, strict=True):
        if mine.ids != other.ids:
            _refuse_worse(model, f"{text}:{number + 1}", source, mine, other)
    if exported.own_sides is None:
        return agreement
    places = [f"{text}:{n + 1}" for n in ended]
    own_src, own_tgt = exported.own_sides
    cut = [own_src.encode(lines[n]) == ids for n, ids in zip(ended, read, strict=True)]
    texts = [tgt.decode(best.ids) for best in ours]
    others = [own_tgt.decode(best.ids) for best in theirs]
    rows = zip(places, same, cut, texts, others, strict=True)
    aside = ", aside from the code that they begin with" if tgt.prefix else ""
    return replace(agreement, texts=_compare_texts(list(rows)) + aside)


def _compare_texts(rows: list[tuple[str, bool, bool, str, str]]) -> str:
    """Say how many texts are the same, by the tokenizer in the export's folder.

    `rows`: place, whether ids of translations are alike, whether it cuts the line as ours, our
    text, and theirs. Raises HeadcountError for another text where ids are alike.
    """
    for place, alike, cut, ours, theirs in rows:
        if alike and cut and ours != theirs:
            raise HeadcountError(
                f"{place}: by the tokenizer in its folder the export writes {theirs!r}, expected "
                f"{ours!r} as ours, from the same ids: this is a bug"
            )
    same = sum(cut and ours == theirs for _, _, cut, ours, theirs in rows)
    otherwise = [place for place, _, cut, _, _ in rows if not cut]
    text = f"{same} of {len(rows)} texts are the same by the tokenizer in the folder"
    if otherwise:
        text += f"; it cuts {len(otherwise)} lines otherwise than ours, first {otherwise[0]}"
    return text


@torch.inference_mode()
def _refuse_worse(
    model: Transformer, place: str, source: Ids, ours: Translation, theirs: Found
) -> None:
    """Raise HeadcountError if another translation is less likely than ours by our own model.

    Each token's log-probability may differ by `NATS` in the program that chose, in both
    translations; by more than that it had no reason to prefer its own. (A beam that must drop one
    of two equally likely beginnings could end worse: too rare to allow for.)
    """
    # With its end unless it was cut off: a search may stop short of one.
    words = len(theirs.ids) + (not theirs.capped)
    losses = token_losses(model, collate(ParallelText([source], [theirs.ids]), [0]))
    likely = -losses[:words].double().sum().item()
    slack = NATS * (len(ours.ids) + 1 + words)
    if likely < ours.log_probability - slack:
        raise HeadcountError(
            f"{place}: by this model the export's translation has a log-probability of "
            f"{likely:.4f} nats, ours {ours.log_probability:.4f}; expected at most {slack:.4f} "
            "less, from the same model and as wide a beam: this is a bug"
        )
