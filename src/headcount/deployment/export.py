"""A model made ready for deployment, and held against this project's own beam search."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from headcount.base.errors import HeadcountError, UserError
from headcount.base.files import whole_folder, write_json
from headcount.base.folders import CODES, SEGMENTATION
from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import Ids, ParallelText, collate
from headcount.data.bpe import Segmenter
from headcount.data.text import read_clean
from headcount.data.vocabulary import BOS, EOS, PAD
from headcount.deployment.ctranslate2_export import export, load_ctranslate2, padded_heads
from headcount.model.loss import token_losses
from headcount.model.removal import remove_heads
from headcount.model.transformer import Transformer
from headcount.search.beam_search import Translation, translate
from headcount.store.kept_heads import pick_heads
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

NATS = 1e-3  # by which one token's log-probability may differ between two engines in fp32


@dataclass(frozen=True)
class Agreement:
    """How far an exported model does what this project's search does, without length penalty."""

    sentences: int  # that were compared
    same: int  # of their translations
    left_out: int  # empty ones, and those that our search cuts off at the longest output allowed
    gap: float  # largest difference of a translation's log-probability, in nats per token

    @property
    def share(self) -> float:
        """Share of the compared sentences that both engines translate alike, 0 to 1."""
        return self.same / self.sentences

    def __str__(self) -> str:
        return (
            f"{self.same} of {self.sentences} translations are the same ({self.share:.1%}), "
            f"log-probabilities within {self.gap:.1e} nats a token; left out as empty or without "
            f"an end: {self.left_out}"
        )


def load_masked(folder: ModelFolder, mask: Path | None) -> Transformer:
    """The model in a folder, on the CPU, without the heads that a mask silences.

    `mask`: a heads.csv, whose gates are taken as they are, or a text that lists silent heads.
    """
    model = folder.load()
    if mask is None:
        return model
    gates, listed = (mask, None) if mask.suffix == ".csv" else (None, mask)
    return remove_heads(model, torch.from_numpy(pick_heads(model.grid, gates, listed, None, None)))


def export_model(
    model: Transformer, source: ModelFolder, pair: PairFolder, out: Path, origin: dict[str, Any]
) -> None:
    """Write a model as a folder that CTranslate2 loads, with an `export.json` that describes it.

    `source`: the folder that the model came from, for its vocabularies. The files that cut text
    into pieces go along, so that the folder is all that a deployment needs. Raises UserError if
    the model was trained on other vocabularies, or if something else lies at `out`.
    """
    load_ctranslate2()  # first of all: without it there is nothing to do
    source.check(pair)
    if out.exists() and any(out.iterdir()) and not (out / "export.json").exists():
        raise UserError(
            f"{out}: expected no folder, an empty one or an earlier export, found other files; "
            "name another folder"
        )
    src, tgt = pair.segmenters()
    encoder, decoder = padded_heads(model)
    facts = {
        "heads": {kind: list(counts) for kind, counts in model.grid.counts.items()},
        "heads_a_layer": {"encoder": encoder, "decoder": decoder},  # silent ones included
        "provenance": origin,
    }
    with whole_folder(out) as part:
        export(model, src.vocabulary, tgt.vocabulary, part)
        for path in pair.files((SEGMENTATION, *CODES)):
            shutil.copyfile(path, part / path.name)
        write_json(part / "export.json", facts)


def check_export(
    model: Transformer, pair: PairFolder, folder: Path, text: Path, settings: DecodeSettings
) -> Agreement:
    """Whether the exported model is the same function as this one, in fp32 on a text.

    CTranslate2 must give our translations our log-probabilities, and its own translations must be
    no less likely by our model than ours, or HeadcountError is raised. They may still differ where
    two are about as likely: it takes padding and start out before the softmax, ours after it; and
    where it goes on without an end, for it has one longest output for all, ours one each. Both
    search without length penalty: ours divides by ((5 + length) / 6)^α, CTranslate2 by length^α,
    and only at α = 0 do both stop at the same point. Raises UserError if the text has no sentence
    that the model ends by itself.
    """
    sides = pair.segmenters()
    plain = settings.model_copy(update={"length_penalty": 0.0})
    whole = map(sides[0].encode, read_clean(text, "none"))
    sources = [sides[0].cut_off(ids, plain.max_source) for ids in whole]
    ours = translate(model, sources, plain, prefix=sides[1].prefix)
    ended = [n for n, found in enumerate(ours) if sources[n] and not found.capped]
    if not ended:
        raise UserError(
            f"{text}: expected a sentence whose translation this model ends by itself, found none; "
            "name another text, or a model trained for longer"
        )
    engine = Engine(folder, sides, plain)
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
        raise HeadcountError(f"{folder}: {agreement}; expected the same model: this is a bug")
    for number, source, found, other in others:
        _refuse_worse(model, f"{text}:{number + 1}", source, found, other)
    return agreement


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
            f"{place}: by this model CTranslate2's translation has a log-probability of "
            f"{likely:.4f} nats, ours {ours.log_probability:.4f}; expected at most {slack:.4f} "
            "less, from the same model and as wide a beam: this is a bug"
        )


class Engine:
    """An exported model in CTranslate2, in fp32 on the CPU; sources and targets are ids."""

    def __init__(self, folder: Path, sides: tuple[Segmenter, Segmenter], settings: DecodeSettings):
        """`sides`: the segmenters of source and target."""
        self.src, self.tgt = (side.vocabulary for side in sides)
        self.prefix = self.tgt.pieces(sides[1].prefix)
        self.settings = settings
        self.translator = load_ctranslate2().Translator(
            str(folder), compute_type="float32", intra_threads=settings.threads
        )

    def translate(self, sources: list[Ids]) -> list[Ids]:
        """The best of each source without length penalty, EOS at its end unless cut off."""
        longest = int(self.settings.max_length_factor * max(map(len, sources)))
        found = self.translator.translate_batch(
            [self.src.pieces(ids) for ids in sources],
            target_prefix=[self.prefix] * len(sources),
            beam_size=self.settings.beam,
            length_penalty=0.0,
            max_batch_size=self.settings.batch_tokens,
            batch_type="tokens",
            max_decoding_length=longest + self.settings.max_length_extra,
            min_decoding_length=0,
            return_end_token=True,
            suppress_sequences=[[piece] for piece in self.tgt.pieces((PAD, BOS))],
        )
        best, end = [result.hypotheses[0] for result in found], self.tgt.pieces((EOS,))
        # The vocabulary takes the end, like any special piece, as unknown.
        return [
            [*self.tgt.ids(pieces[:-1]), EOS] if pieces[-1:] == end else self.tgt.ids(pieces)
            for pieces in best
        ]

    def score(self, sources: list[Ids], targets: list[Ids]) -> list[float]:
        """Log-probability of each target with its end, in nats."""
        found = self.translator.score_batch(
            [self.src.pieces(ids) for ids in sources],
            [self.tgt.pieces(ids) for ids in targets],
            max_batch_size=self.settings.batch_tokens,
            batch_type="tokens",
        )
        return [sum(result.log_probs) for result in found]
