"""An exported model held against this project's own beam search."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import torch

from headcount.base.errors import HeadcountError, UserError
from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import Ids, ParallelText, collate
from headcount.data.bpe import Segmenter
from headcount.data.text import read_clean
from headcount.data.vocabulary import EOS
from headcount.model.loss import token_losses
from headcount.model.transformer import Transformer
from headcount.search.beam_search import Translation, translate
from headcount.store.pair_folder import PairFolder

NATS = 1e-3  # by which one token's log-probability may differ between two engines in fp32


class Engine(Protocol):
    """An exported model in its own program, in fp32; sources and targets are our ids."""

    positions: int
    """How many it knows."""

    def translate(self, sources: list[Ids]) -> list[Ids]:
        """The best of each source without length penalty, EOS at its end unless cut off."""
        ...

    def score(self, sources: list[Ids], targets: list[Ids]) -> list[float]:
        """Log-probability of each target with its end, in nats."""
        ...

    def read(self, lines: list[str], sources: list[Ids]) -> list[str | None] | None:
        """The translation of each line by the tokenizer in the model's folder.

        None for a line that it cuts into other ids than these sources, which are ours; None in
        place of all where the folder has no tokenizer.
        """
        ...


NO_TOKENIZER = "the folder has no tokenizer of that program, so text was cut into subwords by ours"
OpenEngine = Callable[[DecodeSettings], Engine]


@dataclass(frozen=True)
class Agreement:
    """How far an exported model does what this project's search does, without length penalty."""

    sentences: int  # that were compared
    same: int  # of their translations
    left_out: int  # empty ones, and those that our search cuts off at the longest output allowed
    gap: float  # largest difference of a translation's log-probability, in nats per token
    texts: str = NO_TOKENIZER  # what came out of text by the folder's tokenizer, in words

    @property
    def share(self) -> float:
        """Share of the compared sentences that both engines translate alike, 0 to 1."""
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
    open_engine: OpenEngine,
    text: Path,
    settings: DecodeSettings,
) -> Agreement:
    """Whether the exported model is the same function as this one, in fp32 on a text.

    The engine must give our translations our log-probabilities, and its own translations must be
    no less likely by our model than ours, or HeadcountError is raised. They may still differ where
    two are about as likely: CTranslate2 takes padding and start out before the softmax, ours after
    it; and where an engine has not ended at its longest output, at which ours must end. Both search
    without length penalty: ours divides by ((5 + length) / 6)^α, others by length^α, and only at
    α = 0 do both stop at the same point. Raises UserError if the text has no sentence that the
    model ends by itself.
    """
    sides = pair.segmenters()
    engine = open_engine(settings.model_copy(update={"length_penalty": 0.0}))
    longest = min(settings.max_source, engine.positions - 1)
    plain = settings.model_copy(update={"length_penalty": 0.0, "max_source": longest})
    lines = read_clean(text)
    sources = [sides[0].cut_off(sides[0].encode(line), plain.max_source) for line in lines]
    ours = translate(model, sources, plain, prefix=sides[1].prefix)
    fits = [not found.capped and len(found.ids) < engine.positions for found in ours]
    ended = [number for number, ids in enumerate(sources) if ids and fits[number]]
    if not ended:
        raise UserError(
            f"{text}: expected a sentence whose translation this model ends by itself, found none; "
            "name another text, or a model trained for longer"
        )
    read, ours = [sources[n] for n in ended], [ours[n] for n in ended]
    scores = engine.score(read, [found.ids for found in ours])
    gap = max(
        abs(score - found.log_probability) / (len(found.ids) + 1)
        for score, found in zip(scores, ours, strict=True)
    )
    compared = list(zip(ended, read, ours, engine.translate(read), strict=True))
    others = [each for each in compared if [*each[2].ids, EOS] != each[3]]
    agreement = Agreement(len(ours), len(ours) - len(others), len(sources) - len(ours), gap)
    if gap > NATS:
        raise HeadcountError(f"{text}: {agreement}; expected the same model: this is a bug")
    for number, source, found, other in others:
        _refuse_worse(model, f"{text}:{number + 1}", source, found, other)
    texts = engine.read([lines[n] for n in ended], read)
    if texts is None:
        return agreement
    unlike = {number for number, *_ in others}
    both = [(sides[1].decode(o.ids), _spelt(t, sides[1])) for o, t in zip(ours, texts, strict=True)]
    rows = [(f"{text}:{n + 1}", n in unlike, *pair) for n, pair in zip(ended, both, strict=True)]
    aside = ", aside from the code that they begin with" if sides[1].prefix else ""
    return replace(agreement, texts=_compare_texts(rows) + aside)


def _spelt(text: str | None, side: Segmenter) -> str | None:
    """Return a text as ours is written; codes of languages go that a tokenizer leaves in."""
    if text is None:
        return None
    for piece in side.vocabulary.pieces(side.prefix):
        text = text.removeprefix(piece)
    return side.spell(" ".join(text.split()))


def _compare_texts(rows: list[tuple[str, bool, str, str | None]]) -> str:
    """Say how many texts are the same, by the tokenizer in the export's folder.

    `rows`: place, whether the ids are unlike already, our text, and theirs: None for a line that
    is cut otherwise. Raises HeadcountError for another text where ids are alike.
    """
    for place, unlike, ours, theirs in rows:
        if not unlike and theirs not in (None, ours):
            raise HeadcountError(
                f"{place}: by the tokenizer in its folder the export writes {theirs!r}, expected "
                f"{ours!r} as ours, from the same ids: this is a bug"
            )
    same = sum(ours == theirs for *_, ours, theirs in rows)
    cut = [place for place, *_, theirs in rows if theirs is None]
    told = f"{same} of {len(rows)} texts are the same by the tokenizer in the folder"
    return told + (f"; it cuts {len(cut)} lines otherwise than ours, first {cut[0]}" if cut else "")


@torch.inference_mode()
def _refuse_worse(
    model: Transformer, place: str, source: Ids, ours: Translation, theirs: Ids
) -> None:
    """Raise HeadcountError if another translation is less likely than ours by our own model.

    Each token's log-probability may differ by `NATS` in the engine that chose, in both
    translations; by more than that it had no reason to prefer its own. (A beam that must drop one
    of two equally likely beginnings could end worse: too rare to allow for.)
    """
    # With its end if that is there: a search may stop short of one.
    words = theirs[:-1] if theirs[-1:] == [EOS] else theirs
    losses = token_losses(model, collate(ParallelText([source], [words]), [0]))
    likely = -losses[: len(theirs)].double().sum().item()
    slack = NATS * (len(ours.ids) + 1 + len(theirs))
    if likely < ours.log_probability - slack:
        raise HeadcountError(
            f"{place}: by this model the export's translation has a log-probability of "
            f"{likely:.4f} nats, ours {ours.log_probability:.4f}; expected at most {slack:.4f} "
            "less, from the same model and as wide a beam: this is a bug"
        )
