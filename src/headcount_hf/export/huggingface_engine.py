"""A model of Hugging Face's library as it lies in a folder, asked in our ids."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import Ids, ParallelText, in_order, pad_sources
from headcount.data.vocabulary import BOS, EOS, PAD
from headcount.search.extent import longest_outputs, search_batches
from headcount_hf.pretrained.families import CONFIG
from headcount_hf.pretrained.languages import Codes
from headcount_hf.pretrained.library import (
    OF_WEIGHTS,
    Kind,
    check_whole,
    load_whole,
    of_hugging_face,
    target_codes,
)

_ONE_LANGUAGE = ("marian", "pegasus", "bart")
_KIND = Kind("AutoModelForSeq2SeqLM", "encoder-decoder", "bert")


class HuggingFaceEngine:
    """An exported model in Hugging Face's library, in fp32 on the CPU; sources, targets are ids."""

    def __init__(
        self,
        folder: Path,
        rows: tuple[list[int], list[int]],
        prefix: Sequence[int],
        settings: DecodeSettings,
        positions: int,
    ):
        """`rows`: of source and target, their word for each of our ids; `prefix`: ours.

        `positions`: how many the model knows.
        """
        automatic = of_hugging_face("transformers", _KIND).AutoModelForSeq2SeqLM
        self.model = automatic.from_pretrained(folder, **OF_WEIGHTS).eval()
        self.settings, self.prefix, self.positions = settings, prefix, positions
        self.text: HuggingFaceText | None = None  # where the folder has a tokenizer
        self.src, self.tgt = map(torch.tensor, rows)
        self.begin = self.tgt[[BOS, *prefix]]
        self.ours = {row: place for place, row in enumerate(rows[1]) if place != BOS}
        # What begins a translation is one of its words only where it is the copy of another.
        self.never = [rows[1][PAD], *({rows[1][BOS]} - set(self.ours))]

    @torch.inference_mode()
    def translate(self, sources: list[Ids]) -> list[Ids]:
        """The best of each source without length penalty, EOS at its end unless cut off."""
        limits = longest_outputs(sources, self.settings, self.prefix, self.positions)
        found: list[Ids] = [[]] * len(sources)
        for numbers in search_batches(sources, self.settings.batch_tokens):
            read = pad_sources([sources[number] for number in numbers])
            words = self.model.generate(
                self.src[read],
                attention_mask=(read != PAD).long(),
                decoder_input_ids=self.begin.expand(len(read), -1),
                # Else the library puts the start that the folder names before ours.
                decoder_start_token_id=int(self.begin[0]),
                eos_token_id=int(self.tgt[EOS]),
                pad_token_id=int(self.tgt[PAD]),
                forced_bos_token_id=None,
                suppress_tokens=self.never,
                max_new_tokens=max(limits[n] for n in numbers) - len(self.prefix),
                **_search(self.settings),
            )
            for number, row in zip(numbers, words[:, 1:].tolist(), strict=True):
                ids = [self.ours[word] for word in row[: limits[number]]]
                found[number] = ids[: ids.index(EOS) + 1] if EOS in ids else ids
        return found

    @torch.inference_mode()
    def score(self, sources: list[Ids], targets: list[Ids]) -> list[float]:
        """Log-probability of each target with its end, in nats."""
        found = [0.0] * len(sources)
        for batch in in_order(ParallelText(sources, targets), self.settings.batch_tokens):
            losses = self.losses(batch.src, batch.tgt_in, batch.tgt_out)
            for number, loss in zip(batch.indices, losses.double().sum(1).tolist(), strict=True):
                found[number] = -loss
        return found

    def read(self, lines: list[str], sources: list[Ids]) -> list[str | None] | None:
        """The translation of each line by the folder's own tokenizer, as `Engine` has it."""
        if self.text is None:
            return None
        cut, whole = self.text.cut(lines), [[*ids, EOS] for ids in sources]
        alike = [n for n, ids in enumerate(whole) if cut[n] == self.src[ids].tolist()]
        found = dict(zip(alike, self.text.translate([lines[n] for n in alike]), strict=True))
        return [found.get(n) for n in range(len(lines))]

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


class HuggingFaceText:
    """A model with a tokenizer of its own, in Hugging Face's library, in fp32 on the CPU."""

    def __init__(
        self, model: Any, tokenizer: Any, settings: DecodeSettings, before: str = "", **begin: int
    ):
        """`before`: what every line begins with; `begin`: ids of first words, for `generate`."""
        self.model, self.tokenizer, self.settings = model, tokenizer, settings
        self.before, self.begin = before, begin

    def cut(self, lines: list[str]) -> list[list[int]]:
        """Ids of each line, with its end."""
        return self.tokenizer([self.before + line for line in lines])["input_ids"]

    @torch.inference_mode()
    def translate(self, lines: list[str]) -> list[str]:
        """The translation of each line, none of them empty, without length penalty."""
        found = [""] * len(lines)
        sources = [ids[:-1] for ids in self.cut(lines)] if lines else []  # as ours, without EOS
        positions = self.model.config.max_position_embeddings
        limits = longest_outputs(sources, self.settings, (), positions)
        for numbers in search_batches(sources, self.settings.batch_tokens):
            given = [self.before + lines[n] for n in numbers]
            words = self.model.generate(
                **self.tokenizer(given, return_tensors="pt", padding=True),
                suppress_tokens=[self.model.config.pad_token_id],
                max_new_tokens=max(limits[n] for n in numbers),
                **self.begin,
                **_search(self.settings),
            )
            # Before the first word stands what every translation begins with.
            rows = [row[: limits[n] + 1] for n, row in zip(numbers, words.tolist(), strict=True)]
            decoded = self.tokenizer.batch_decode(rows, skip_special_tokens=True)
            for number, line in zip(numbers, decoded, strict=True):
                found[number] = line
        return found


def text_of_one_language(folder: Path, settings: DecodeSettings) -> HuggingFaceText:
    """Open a model whose folder tells all. Raises UserError for one of several target languages.

    Its translations begin with the code of one, which the folder does not tell.
    """
    kind = read_json(folder / CONFIG).get("model_type")
    if kind not in _ONE_LANGUAGE:
        raise UserError(
            f"{folder}: expected a model of two languages, {', '.join(_ONE_LANGUAGE)}, found "
            f"{kind!r}, whose folder does not tell into which language; measure its other forms"
        )
    found = load_whole(folder, _KIND, {}, {})
    check_whole(folder, found)
    if len(codes := target_codes(found.tokeniser)) > 1:
        raise UserError(
            f"{folder}: expected a model of two languages, found one whose sources begin with "
            f"the code of their target, {codes[0]} or one of {len(codes) - 1} more; measure "
            "its other forms"
        )
    return HuggingFaceText(found.model, found.tokeniser, settings)


def folders_own_text(folder: Path, engine: HuggingFaceEngine, codes: Codes) -> HuggingFaceText:
    """Open an exported folder by its own tokenizer, which is told the languages alone.

    `codes`: what the model calls both languages, where it is told them.
    """
    kind = engine.model.config.model_type
    told = {} if kind == "marian" else dict(zip(("src_lang", "tgt_lang"), codes, strict=True))
    found = load_whole(folder, _KIND, {key: code for key, code in told.items() if code}, {})
    words = engine.begin.tolist()
    begin = {"forced_bos_token_id": words[1]} if words[1:] else {}
    if kind == "mbart" and not words[1:]:  # its users name the language as the start
        begin = {"decoder_start_token_id": words[0]}
    before = f">>{codes[1]}<< " if kind == "marian" and codes[1] else ""
    return HuggingFaceText(found.model, found.tokeniser, engine.settings, before, **begin)


def _search(settings: DecodeSettings) -> dict[str, Any]:
    """Beam search as ours without length penalty, in the words of `generate`.

    What a folder says of its makers' search has no effect beside these.
    """
    return {
        "num_beams": settings.beam,
        "do_sample": False,
        "length_penalty": 0.0,
        "early_stopping": "never",
        "max_length": None,
        "min_length": 0,
        "min_new_tokens": None,
        "forced_eos_token_id": None,
        "no_repeat_ngram_size": 0,
        "encoder_no_repeat_ngram_size": 0,
        "repetition_penalty": 1.0,
        "encoder_repetition_penalty": 1.0,
        "exponential_decay_length_penalty": None,
        "bad_words_ids": None,
        "begin_suppress_tokens": None,
        "sequence_bias": None,
        "num_return_sequences": 1,
    }
