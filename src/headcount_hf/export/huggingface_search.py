"""A model of Hugging Face's library as it lies in a folder, searched in our ids."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headcount.base.errors import UserError
from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import Ids, ParallelText, in_order, pad_sources
from headcount.data.bpe import AnySegmenter
from headcount.data.vocabulary import BOS, EOS, PAD, UNK
from headcount.search.sources import longest_outputs, search_batches
from headcount_hf.export.exported import Best, Exported
from headcount_hf.pretrained.families import Codes, Config
from headcount_hf.pretrained.languages import place_marks, told_sides
from headcount_hf.pretrained.library import open_tokeniser, open_whole
from headcount_hf.pretrained.pieces import named_languages, read_pieces
from headcount_hf.pretrained.weights import number_words

Rows = tuple[list[int], list[int]]  # of source and target: for each of our ids their word
Sides = tuple[AnySegmenter, AnySegmenter]


class HuggingFaceSearch(Exported):
    """A model in Hugging Face's library, in fp32 on the CPU; sources and targets are our ids."""

    facts = {"engine": "huggingface"}

    def __init__(
        self, folder: Path, sides: Sides, settings: DecodeSettings, positions: int, rows: Rows
    ):
        """`rows`: their words; `positions`: how many the model knows."""
        self.model = open_whole(folder)
        self.sides, self.settings, self.positions = sides, settings, positions
        self.own_sides: Sides | None = None
        self.src, self.tgt = map(torch.tensor, rows)
        self.begin = self.tgt[[BOS, *sides[1].prefix]]
        self.ours = {row: place for place, row in enumerate(rows[1]) if place != BOS}
        # What begins a translation is one of its words only where it is the copy of another.
        self.never = [rows[1][PAD], *({rows[1][BOS]} - set(self.ours))]
        # In place of what a folder says of its makers' search.
        self.model.generation_config = type(self.model.generation_config)(
            decoder_start_token_id=rows[1][BOS],
            eos_token_id=rows[1][EOS],
            pad_token_id=rows[1][PAD],
            suppress_tokens=self.never,
            num_beams=settings.beam,
            length_penalty=0.0,
            early_stopping="never",
        )

    @torch.inference_mode()
    def translate(
        self, sources: list[Ids], done: Callable[[int], object] = lambda sentences: None
    ) -> Sequence[Best]:
        """Return the best translation of each source in order; an empty source stays empty."""
        prefix = self.sides[1].prefix
        limits = longest_outputs(sources, self.settings, prefix, self.positions)
        best = [Best([], False)] * len(sources)
        for numbers in search_batches(sources, self.settings.batch_tokens):
            read = pad_sources([sources[number] for number in numbers])
            words = self.model.generate(
                self.src[read],
                attention_mask=(read != PAD).long(),
                decoder_input_ids=self.begin.expand(len(read), -1),
                max_new_tokens=max(limits[n] for n in numbers) - len(prefix),
            )
            for number, row in zip(numbers, words[:, 1:].tolist(), strict=True):
                best[number] = self._best(row, limits[number])
            done(len(numbers))
        return best

    def _best(self, row: list[int], limit: int) -> Best:
        ids = [self.ours[word] for word in row[:limit]]
        length = ids.index(EOS) if EOS in ids else limit - 1
        return Best(ids[:length], length == limit - 1)

    @torch.inference_mode()
    def score(self, sources: list[Ids], targets: list[Ids]) -> list[float]:
        """Return the log-probability of each target with its end, in nats."""
        found = [0.0] * len(sources)
        for batch in in_order(ParallelText(sources, targets), self.settings.batch_tokens):
            losses = self.losses(batch.src, batch.tgt_in, batch.tgt_out)
            for number, loss in zip(batch.indices, losses.double().sum(1).tolist(), strict=True):
                found[number] = -loss
        return found

    def logits(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Scores [b, q, words of theirs] of the next word, of our ids [b, k] and [b, q]."""
        return self.model(
            input_ids=self.src[src],
            attention_mask=(src != PAD).long(),
            decoder_input_ids=self.tgt[tgt_in],
            use_cache=False,
        ).logits

    def losses(self, src: Tensor, tgt_in: Tensor, tgt_out: Tensor) -> Tensor:
        """Minus the log-probability of each target token [b, q], in nats; 0 for padding."""
        words = self.tgt[tgt_out].masked_fill(tgt_out == PAD, -100)
        scores = self.logits(src, tgt_in).transpose(1, 2)
        return torch.nn.functional.cross_entropy(scores, words, reduction="none")


class TokeniserSide:
    """One side of the tokeniser in a model's folder, in place of our segmenter."""

    def __init__(
        self, tokeniser: Any, rows: list[int], ours: AnySegmenter, prefix: Ids, before: str = ""
    ):
        """`rows`: their word for each of our ids; `before`: what every line begins with."""
        self.language, self.spell, self.prefix = ours.language, ours.spell, prefix
        self._tokeniser, self._rows, self._before = tokeniser, rows, before
        self._places = {row: place for place, row in enumerate(rows) if place != BOS}

    def encode(self, line: str) -> Ids:
        """Return the ids of a line, without its end."""
        if not line:
            return []
        words = self._tokeniser(self._before + self.spell(line))["input_ids"][:-1]
        return [self._places.get(word, UNK) for word in words]

    def cut_off(self, ids: Ids, longest: int) -> Ids:
        """Return no more than `longest` ids."""
        return ids[:longest]

    def decode(self, ids: Ids) -> str:
        """Return the line of ids, without the prefix."""
        start = len(self.prefix) if ids[: len(self.prefix)] == self.prefix else 0
        words = [self._rows[i] for i in ids[start:]]
        line = self._tokeniser.decode(words, skip_special_tokens=True)
        return self.spell(" ".join(line.split()))


def open_by_tokeniser(folder: Path, ours: Sides, settings: DecodeSettings) -> HuggingFaceSearch:
    """Open a folder that has a tokeniser, which cuts and joins its lines.

    Raises UserError for a model of several target languages: its translations begin with the code
    of one, which the folder does not tell.
    """
    config = Config.read(folder)
    pieces = read_pieces(config)
    if any(told_sides(config, pieces, (None, None))):
        raise UserError(
            f"{folder}: expected a model of two languages, found one of {len(pieces.languages)} "
            f"({', '.join(list(pieces.languages)[:4])}, …), whose folder does not tell into which "
            "it translates; measure its other forms"
        )
    marks = place_marks(config, pieces, (None, None)).marks[1]
    numbering = number_words(config, pieces.unknown)
    rows = numbering.src_rows, numbering.tgt_rows
    prefix = [rows[1].index(pieces.sides[1].ids[name], EOS) for name in marks.before]
    sides = tuple(
        TokeniserSide(pieces.tokeniser, *each, prefix) for each in zip(rows, ours, strict=True)
    )
    return HuggingFaceSearch(folder, sides, settings, config.max_position_embeddings, rows)


def own_sides(search: HuggingFaceSearch, folder: Path, codes: Codes) -> Sides:
    """Return the tokeniser of an exported folder, told the languages alone, as segmenters.

    `codes`: what the model calls both languages, where it is told them.
    """
    kind = search.model.config.model_type
    before = f">>{codes[1]}<< " if kind == "marian" and codes[1] else ""
    tokeniser, prefix = (
        open_tokeniser(folder, **named_languages(codes)),
        list(search.sides[1].prefix),
    )
    rows = search.src.tolist(), search.tgt.tolist()
    src, tgt = (
        TokeniserSide(tokeniser, *each, prefix, before)
        for each in zip(rows, search.sides, strict=True)
    )
    return src, tgt
