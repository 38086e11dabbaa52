"""Folder of an encoder-decoder that stays in Hugging Face's library, its text, and its search."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from headcount.ablation.masked_bleu import Inputs, Translator
from headcount.base.errors import UserError
from headcount.base.ranking import Heads, head_masks
from headcount.base.settings.decode import GenerateSettings
from headcount.data.batches import Ids
from headcount.data.lines import clean_lines, references
from headcount.model.machine import batches_of, pick_device
from headcount.model.transformer import first_device
from headcount.search.sources import search_batches
from headcount_hf.hooks.hooked_seq2seq import HookedSeq2Seq, Source, TokenisedText
from headcount_hf.pretrained.families import check_languages
from headcount_hf.pretrained.library import input_files, open_tokeniser, open_whole
from headcount_hf.pretrained.pieces import named_languages
from headcount_hf.pretrained.segment import check_forced

_GENERATE = GenerateSettings()
_BEGINS = "decoder_start_token_id"
_ALWAYS = {"early_stopping": False, "do_sample": False}
"""Search settings that the model's folder cannot change."""


@dataclass(frozen=True)
class HookedFolder:
    """A model and its tokeniser, as the library saves them."""

    path: Path
    source: str = ""  # the model's name of the source language, such as eng_Latn, if it has several
    target: str = ""
    prefix: str = ""  # before every source, such as "translate English to German: "

    empty = ""
    """A source without content."""

    @property
    def files(self) -> list[Path]:
        """All files that may be read."""
        return input_files(self.path)

    @property
    def weight_files(self) -> list[Path]:
        """All files of weights, which identify the model."""
        return sorted(self.path.glob("*.safetensors"))

    @cached_property
    def _loaded(self) -> tuple[Any, HookedSeq2Seq]:
        """Tokeniser and model, in fp32."""
        if not self.path.is_dir():
            raise self._fault("expected a folder, found none")
        theirs = open_whole(self.path)
        tokeniser = open_tokeniser(self.path, **named_languages((self.source, self.target)))
        self._check_languages(tokeniser)
        words, rows = len(tokeniser), theirs.get_input_embeddings().num_embeddings
        if words > rows:
            raise self._fault(f"expected a tokeniser of at most {rows} subwords, found {words}")
        return tokeniser, HookedSeq2Seq(theirs)

    @property
    def tokeniser(self) -> Any:
        """The library's tokeniser. Raises as `load` does."""
        return self._loaded[0]

    def load(self, device: str = "auto") -> HookedSeq2Seq:
        """Return the model, in evaluation mode. Raises UserError for a folder that does not fit."""
        return self._loaded[1].to(pick_device(device))

    def check(self, texts: "HookedInputs | None" = None) -> None:
        """Raise UserError where the mask of one sentence acts on another one."""
        self._loaded[1].check(self.text([self.empty], ["a"]))

    def text(self, sources: Sequence[str], targets: Sequence[str]) -> TokenisedText:
        """Return pairs of lines, with all ids that the tokeniser adds."""
        return self.pairs(self.sources(sources), self._ids("text_target", targets))

    def pairs(self, sources: list[Source], said: list[Ids]) -> TokenisedText:
        """Return pairs of ids from the tokeniser, as the model reads them."""
        start = self.target_options().get(_BEGINS)
        if start is not None:  # the tokeniser puts it behind the end
            said = [ids[:-1] for ids in said]
        return self._loaded[1].text(sources, said, start)

    def sources(self, lines: Sequence[Any]) -> list[Source]:
        """Return the ids of source lines."""
        return self._ids("text", [self.prefix + line for line in lines])

    def batches(self, sources: Sequence[Source], budget: int) -> list[list[int]]:
        """Return numbers of the sources of every batch of a search."""
        return search_batches(sources, budget)

    def target_options(self) -> dict[str, Any]:
        """Return arguments of the search for the target language."""
        if not self.target:
            return {}
        language = _languages(self.tokeniser)[self.target]
        (empty,) = self._ids("text_target", [""])
        # The first word of every target, or, in mBART, the start before it.
        return {"forced_bos_token_id" if empty[0] == language else _BEGINS: language}

    def _ids(self, side: str, lines: Sequence[str]) -> list[Ids]:
        """Return the ids of lines of a side, `text` or `text_target` in the tokeniser."""
        return self.tokeniser(**{side: list(lines)})["input_ids"] if lines else []

    def _check_languages(self, tokeniser: Any) -> None:
        """Raise UserError for languages that are missing, needless, unknown or contradicted."""
        several, named = hasattr(tokeniser, "src_lang"), [*filter(None, (self.source, self.target))]
        if len(named) != (2 if several else 0):
            raise self._fault(
                "expected --src-code and --tgt-code, such as eng_Latn and deu_Latn"
                if several
                else f"expected no --src-code or --tgt-code, found {', '.join(named)}; sources "
                "may begin with a --prefix"
            )
        # Codes of a Marian stand before sources.
        codes = [name for name in getattr(tokeniser, "encoder", ()) if re.fullmatch(">>.+<<", name)]
        if len(codes) > 1 and not self.prefix.startswith(tuple(codes)):
            raise self._fault(
                f"expected a --prefix with the code of a target language, {codes[0]} or one of "
                f"{len(codes) - 1} more, found {self.prefix!r}"
            )
        known = _languages(tokeniser)
        if unknown := [name for name in named if name not in known]:
            some = ", ".join(sorted(known)[:12])
            raise self._fault(f"expected a language such as {some}, found {unknown[0]!r}")
        if named:
            check_forced(self.path, {n: name for name, n in known.items()}, self.target)

    def _fault(self, words: str) -> UserError:
        return UserError(f"--model {self.path}: {words}")


def _languages(tokeniser: Any) -> dict[str, int]:
    """Return the ids of languages, and of other added subwords, by their names."""
    own: Mapping[str, str] = getattr(tokeniser, "lang_code_to_token", {})  # M2M100's
    added = (token for token in tokeniser.get_added_vocab() if not token.startswith("<"))
    tokens = {token: token for token in added} | own
    return {name: tokeniser.convert_tokens_to_ids(token) for name, token in tokens.items()}


@dataclass(frozen=True)
class HookedInputs(Inputs):
    """A model's folder, text for it, and settings of its search."""

    model: HookedFolder
    text: Path
    pair: str = ""  # its languages, as in en-de
    generate: GenerateSettings = _GENERATE

    def read(self, split: str) -> TokenisedText:
        """Return the pairs of a split, with the first of several references."""
        src, tgt = (list(clean_lines(path)) for path in self.texts(split))
        if len(src) != len(tgt):
            raise UserError(
                f"{self.text}: {split}.src has {len(src)} lines, {split}.tgt has {len(tgt)}; "
                "expected as many on both sides"
            )
        return self.model.text(src, [references(line)[0] for line in tgt])

    def languages(self) -> tuple[str, str]:
        """Return the languages that the flags name."""
        return self.pair, "as --src-lang and --tgt-lang say"

    def load(self) -> "HookedModel":
        """Return the model. Raises UserError for other languages, or as `HookedFolder.check`."""
        codes = self.model.source, self.model.target
        check_languages(self.model.path, self.pair.split("-"), codes)
        model = self.model.load(self.generate.device)
        self.model.check()
        return HookedModel(self, model)


class HookedModel(Translator):
    """A model that translates with heads masked."""

    def __init__(self, inputs: HookedInputs, model: HookedSeq2Seq):
        """Use the tokeniser, the target language and the settings of these inputs."""
        self.model, self.folder, self.generate = model, inputs.model, inputs.generate
        self.grid, self.language = model.grid, inputs.pair.rpartition("-")[2]

    def search(self) -> dict[str, Any]:
        """Return settings that shape translations. The model's folder decides all others."""
        shaping = {"beam", "length_penalty", "max_new_tokens"}
        return {"search": "generate", **self.generate.model_dump(include=shaping), **_ALWAYS}

    def translations(
        self, lines: list[str], sets: list[Heads], done: Callable[[int], object]
    ) -> dict[Heads, list[str]]:
        """Return the lines, translated with every distinct set of heads masked."""
        masks = torch.from_numpy(head_masks(sets, self.grid.size)).to(first_device(self.model))
        rows = masks.repeat_interleave(len(lines), dim=0)
        repeated, budget = self.folder.sources(lines) * len(sets), self.generate.batch_tokens
        texts, settings = [""] * len(repeated), self.search()
        options = self.folder.target_options() | {"num_beams": settings.pop("beam")} | settings
        del options["search"]
        with batches_of("generate", budget):
            for numbers in self.folder.batches(repeated, budget):
                ids = self.model.generate([repeated[n] for n in numbers], options, rows[numbers])
                decoded = self.folder.tokeniser.batch_decode(ids, skip_special_tokens=True)
                for number, line in zip(numbers, decoded, strict=True):
                    texts[number] = line
                done(len(numbers))
        remaining = iter(texts)
        return {heads: list(islice(remaining, len(lines))) for heads in sets}
