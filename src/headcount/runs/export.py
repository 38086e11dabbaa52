"""A model made ready for deployment, and held against this project's own beam search."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from headcount.base.errors import HeadcountError, UserError
from headcount.base.files import write_json
from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import Ids
from headcount.data.bpe import Segmenter, load_segmenters
from headcount.data.vocabulary import BOS, PAD
from headcount.model.removal import remove_heads
from headcount.model.transformer import Transformer
from headcount.runs.checkpoint import load_model
from headcount.runs.ctranslate2_export import export, load_ctranslate2, padded_heads
from headcount.runs.decode import translate
from headcount.runs.kept_heads import pick_heads
from headcount.runs.translation import check_vocabularies, read_source

AGREEING = 0.99  # share of sentences that two engines in fp32 must translate alike
SEGMENTATION = ("segmentation.json", "src.codes", "tgt.codes")


@dataclass(frozen=True)
class Agreement:
    """How many translations of a text are the same in both engines, without length penalty."""

    sentences: int  # that were compared
    same: int
    left_out: int  # empty ones, and those that our search cuts off at the longest output allowed

    @property
    def share(self) -> float:
        """Share of the compared sentences that both engines translate alike, 0 to 1."""
        return self.same / self.sentences

    def __str__(self) -> str:
        return (
            f"{self.same} of {self.sentences} translations are the same ({self.share:.1%}); "
            f"left out as empty or without an end: {self.left_out}"
        )


def load_masked(folder: Path, mask: Path | None) -> Transformer:
    """The model in a folder, on the CPU, without the heads that a mask silences.

    `mask`: a heads.csv, whose gates are taken as they are, or a text that lists silent heads.
    """
    model = load_model(folder)
    if mask is None:
        return model
    gates, listed = (mask, None) if mask.suffix == ".csv" else (None, mask)
    return remove_heads(model, torch.from_numpy(pick_heads(model.grid, gates, listed, None, None)))


def export_inputs(folder: Path, bpe: Path, mask: Path | None) -> list[Path]:
    """The files that shape an exported model."""
    files = [folder / name for name in ("model.json", "weights.safetensors")]
    files += [bpe / name for name in (*SEGMENTATION, "src.vocab", "tgt.vocab")]
    return [*files, mask] if mask else files


def export_model(
    model: Transformer, source: Path, bpe: Path, out: Path, origin: dict[str, Any]
) -> None:
    """Write a model as a folder that CTranslate2 loads, with an `export.json` that describes it.

    `source`: the folder that the model came from, for its vocabularies. The files that cut text
    into pieces go along, so that the folder is all that a deployment needs. Raises UserError if
    the model was trained on other vocabularies, or if something else lies at `out`.
    """
    load_ctranslate2()  # first of all: without it there is nothing to do
    check_vocabularies(source, bpe)
    if out.exists() and any(out.iterdir()) and not (out / "export.json").exists():
        raise UserError(
            f"{out}: expected no folder, an empty one or an earlier export, found other files; "
            "name another folder"
        )
    src, tgt = load_segmenters(bpe)
    export(model, src.vocabulary, tgt.vocabulary, out)
    for name in SEGMENTATION:
        shutil.copyfile(bpe / name, out / name)
    encoder, decoder = padded_heads(model)
    facts = {
        "heads": {kind: list(counts) for kind, counts in model.grid.counts.items()},
        "heads_a_layer": {"encoder": encoder, "decoder": decoder},  # silent ones included
        "provenance": origin,
    }
    write_json(out / "export.json", facts)


def check_export(
    model: Transformer, bpe: Path, folder: Path, text: Path, settings: DecodeSettings
) -> Agreement:
    """How many lines of a text the exported model translates as this one does, in fp32.

    Without length penalty: with one the engines differ by right, for ours divides by
    ((5 + length) / 6)^α, CTranslate2 by length^α. Raises UserError if the text has no sentence that
    the model ends by itself, HeadcountError if fewer than `AGREEING` are the same.
    """
    src, tgt = load_segmenters(bpe)
    plain = settings.model_copy(update={"length_penalty": 0.0})
    sources = [src.encode(line)[: plain.max_source] for line in read_source(text)]
    ours = translate(model, sources, plain)
    ended = [n for n, found in enumerate(ours) if sources[n] and not found.capped]
    if not ended:
        raise UserError(
            f"{text}: expected a sentence whose translation this model ends by itself, found none; "
            "name another text, or a model trained for longer"
        )
    theirs = _translate_there(folder, [sources[n] for n in ended], (src, tgt), plain)
    same = sum(ours[n].ids == found for n, found in zip(ended, theirs, strict=True))
    found = Agreement(len(ended), same, len(sources) - len(ended))
    if found.share < AGREEING:
        raise HeadcountError(f"{folder}: {found}; expected {AGREEING:.0%}: this is a bug")
    return found


def _translate_there(
    folder: Path, sources: list[Ids], sides: tuple[Segmenter, Segmenter], settings: DecodeSettings
) -> list[Ids]:
    """Translations of an exported model by CTranslate2, in fp32 on the CPU."""
    engine = load_ctranslate2().Translator(
        str(folder), compute_type="float32", intra_threads=settings.threads
    )
    src, tgt = (side.vocabulary for side in sides)
    longest = max(map(len, sources))
    found = engine.translate_batch(
        [src.pieces(ids) for ids in sources],
        beam_size=settings.beam,
        length_penalty=0.0,
        max_batch_size=settings.batch_tokens,
        batch_type="tokens",
        max_decoding_length=int(settings.max_length_factor * longest) + settings.max_length_extra,
        min_decoding_length=0,
        suppress_sequences=[[piece] for piece in tgt.pieces((PAD, BOS))],
    )
    return [tgt.ids(result.hypotheses[0]) for result in found]
