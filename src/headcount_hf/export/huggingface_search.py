"""Search by Hugging Face's library, with sources and targets in our ids."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headcount.base.errors import UserError
from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import Ids, ParallelText, in_order, pad_sources
from headcount.data.bpe import AnySegmenter
from headcount.data.vocabulary import BOS, EOS, PAD, UNK
from headcount_hf.export.exported import Best, Exported, Rows, Sides
from headcount_hf.pretrained.families import Codes, Config
from headcount_hf.pretrained.library import open_tokeniser, open_whole
from headcount_hf.pretrained.pieces import named_languages, read_pieces
from headcount_hf.pretrained.segment import needs_codes, place_marks
from headcount_hf.pretrained.weights import number_words


class HuggingFaceSearch(Exported):
    """A model in Hugging Face's library, in fp32 on the CPU."""

    facts = {"engine": "huggingface"}

    def __init__(
        self, folder: Path, sides: Sides, settings: DecodeSettings, positions: int, rows: Rows
    ):
        """Load a folder for a model with a number of positions, and words `rows`."""
        self.model = open_whole(folder)
        super().__init__(sides, settings, positions)
        self.src, self.tgt = map(torch.tensor, rows)
        self.begin = self.tgt[[BOS, *sides[1].prefix]]
        self.ours = {row: place for place, row in enumerate(rows[1]) if place != BOS}
        # The start may occur in a translation only if it is also another word.
        self.never = [rows[1][PAD], *({rows[1][BOS]} - set(self.ours))]
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
    def _begin(self, sources: list[Ids], longest: int) -> list[list[int]]:
        """Return the translations of a batch in words of theirs."""
        read = pad_sources(sources)
        return self.model.generate(
            self.src[read],
            attention_mask=(read != PAD).long(),
            decoder_input_ids=self.begin.expand(len(read), -1),
            max_new_tokens=longest - len(self.sides[1].prefix),
        )[:, 1:].tolist()

    def _choose(self, result: list[int], limit: int) -> Best:
        """Return a translation up to its end or a limit, in our ids."""
        ids = [self.ours[word] for word in result[:limit]]
        length = ids.index(EOS) if EOS in ids else limit - 1
        return Best(ids[:length], length == limit - 1)

    @torch.inference_mode()
    def score(self, sources: list[Ids], targets: list[Ids]) -> list[float]:
        scores = [0.0] * len(sources)
        for batch in in_order(ParallelText(sources, targets), self.settings.batch_tokens):
            losses = self.losses(batch.src, batch.tgt_in, batch.tgt_out)
            for number, loss in zip(batch.indices, losses.double().sum(1).tolist(), strict=True):
                scores[number] = -loss
        return scores

    def logits(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Return scores [b, q, their words] of the next word, for our ids [b, k] and [b, q]."""
        return self.model(
            input_ids=self.src[src],
            attention_mask=(src != PAD).long(),
            decoder_input_ids=self.tgt[tgt_in],
            use_cache=False,
        ).logits

    def losses(self, src: Tensor, tgt_in: Tensor, tgt_out: Tensor) -> Tensor:
        """Return the loss of every target token [b, q], in nats, and 0 for padding."""
        words = self.tgt[tgt_out].masked_fill(tgt_out == PAD, -100)
        scores = self.logits(src, tgt_in).transpose(1, 2)
        return torch.nn.functional.cross_entropy(scores, words, reduction="none")


class TokeniserSide:
    """One side of the tokeniser in a model's folder, in place of our segmenter."""

    def __init__(
        self, tokeniser: Any, rows: list[int], ours: AnySegmenter, prefix: Ids, before: str = ""
    ):
        """Wrap a tokeniser with their word for each of our ids, and a text before every line."""
        self.language, self.normalise, self.prefix = ours.language, ours.normalise, prefix
        self._tokeniser, self._rows, self._before = tokeniser, rows, before
        self._places = {row: place for place, row in enumerate(rows) if place != BOS}

    def encode(self, line: str) -> Ids:
        """Return the ids of a line, without its end."""
        if not line:
            return []
        words = self._tokeniser(self._before + self.normalise(line))["input_ids"][:-1]
        return [self._places.get(word, UNK) for word in words]

    def cut_off(self, ids: Ids, longest: int) -> Ids:
        """Return the first `longest` ids."""
        return ids[:longest]

    def decode(self, ids: Ids) -> str:
        """Return the line of ids, without the prefix."""
        start = len(self.prefix) if ids[: len(self.prefix)] == self.prefix else 0
        words = [self._rows[i] for i in ids[start:]]
        line = self._tokeniser.decode(words, skip_special_tokens=True)
        return self.normalise(" ".join(line.split()))


def open_by_tokeniser(folder: Path, ours: Sides, settings: DecodeSettings) -> HuggingFaceSearch:
    """Open a folder with a tokeniser, which cuts and joins the lines of two languages."""
    config = Config.read(folder)
    pieces = read_pieces(config)
    if any(needs_codes(config, pieces, (None, None))):
        raise UserError(
            f"{folder}: expected a model of two languages, found one of {len(pieces.languages)} "
            "without a target language; measure its other forms"
        )
    marks = place_marks(config, pieces, (None, None)).marks[1]
    rows = number_words(config, pieces.unknown).rows
    prefix = [rows[1].index(pieces.sides[1].ids[name], EOS) for name in marks.before]
    pairs = zip(rows, ours, strict=True)
    sides = tuple(TokeniserSide(pieces.tokeniser, *pair, prefix) for pair in pairs)
    return HuggingFaceSearch(folder, sides, settings, config.max_position_embeddings, rows)


def own_sides(search: HuggingFaceSearch, folder: Path, codes: Codes) -> Sides:
    """Return the tokeniser of an exported folder as segmenters, for the languages of `codes`."""
    kind = search.model.config.model_type
    before = f">>{codes[1]}<< " if kind == "marian" and codes[1] else ""
    tokeniser = open_tokeniser(folder, **named_languages(codes))
    prefix, rows = list(search.sides[1].prefix), (search.src.tolist(), search.tgt.tolist())
    pairs = zip(rows, search.sides, strict=True)
    src, tgt = (TokeniserSide(tokeniser, *pair, prefix, before) for pair in pairs)
    return src, tgt
