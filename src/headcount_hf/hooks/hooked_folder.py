"""The folder of an encoder-decoder that stays in Hugging Face's library, and text for it.

They replace the folders of our own models and of segmented pairs.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from headcount.base.errors import UserError
from headcount.base.folders import SIDES
from headcount.data.batches import Ids
from headcount.data.lines import clean_lines, references
from headcount.model.machine import pick_device
from headcount_hf.hooks.hooked_seq2seq import HookedSeq2Seq
from headcount_hf.hooks.tokenised_text import TokenisedText
from headcount_hf.pretrained.languages import check_forced
from headcount_hf.pretrained.library import input_files, open_tokeniser, open_whole
from headcount_hf.pretrained.pieces import check_legacy

_BEGINS = "decoder_start_token_id"


@dataclass(frozen=True)
class Told:
    """Languages and task for a model of several, empty where it needs none."""

    source: str = ""  # its name of the source language, such as eng_Latn
    target: str = ""
    prefix: str = ""  # before every source, such as "translate English to German: "


@dataclass(frozen=True)
class HookedFolder:
    """A model and its tokeniser, as the library saves them."""

    path: Path
    languages: Told = Told()

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
        both = {"src_lang": self.languages.source, "tgt_lang": self.languages.target}
        named = {key: name for key, name in both.items() if name}
        theirs, tokeniser = open_whole(self.path), open_tokeniser(self.path, **named)
        check_legacy(self.path, tokeniser)
        self._check_languages(tokeniser, named)
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
        place = pick_device(device)
        return self._loaded[1].to(place)

    def check(self, texts: "HookedTexts | None" = None) -> None:
        """Raise UserError where the mask of one sentence acts on another one."""
        self._loaded[1].check(self.text([""], ["a"]))

    def text(self, sources: Sequence[str], targets: Sequence[str]) -> TokenisedText:
        """Return pairs of lines, with all ids that the tokeniser adds."""
        said, start = self._ids("text_target", targets), None
        if _BEGINS in self.target_options():
            # The tokeniser puts the start of the target behind its end.
            start, said = self.target_options()[_BEGINS], [ids[:-1] for ids in said]
        return self._loaded[1].text(self.sources(sources), said, start)

    def sources(self, lines: Sequence[str]) -> list[Ids]:
        """Return the ids of source lines."""
        return self._ids("text", [self.languages.prefix + line for line in lines])

    def lines(self, ids: torch.Tensor) -> list[str]:
        """Return the text of ids from the search."""
        return self.tokeniser.batch_decode(ids, skip_special_tokens=True)

    def target_options(self) -> dict[str, int]:
        """Return arguments of the search for the target language."""
        if not self.languages.target:
            return {}
        language = self._language(self.tokeniser, self.languages.target)
        (empty,) = self._ids("text_target", [""])
        # The first word of every target, or, in mBART, the start before it.
        return {"forced_bos_token_id" if empty[0] == language else _BEGINS: language}

    def _ids(self, side: str, lines: Sequence[str]) -> list[Ids]:
        """Return the ids of lines of a side, `text` or `text_target` in the tokeniser."""
        return self.tokeniser(**{side: list(lines)})["input_ids"] if lines else []

    def _check_languages(self, tokeniser: Any, named: Mapping[str, str]) -> None:
        """Raise UserError for languages that are missing, needless, unknown or contradicted."""
        several = hasattr(tokeniser, "src_lang")
        if several and len(named) < 2:
            raise self._fault("expected --src-code and --tgt-code, such as eng_Latn and deu_Latn")
        if named and not several:
            raise self._fault(
                f"expected no --src-code or --tgt-code, found {', '.join(named.values())}; sources "
                "may begin with a --prefix"
            )
        # Codes of a Marian stand before sources.
        codes = [name for name in getattr(tokeniser, "encoder", ()) if re.fullmatch(">>.+<<", name)]
        if len(codes) > 1 and not self.languages.prefix.startswith(tuple(codes)):
            raise self._fault(
                f"expected a --prefix with the code of a target language, {codes[0]} or one of "
                f"{len(codes) - 1} more, found {self.languages.prefix!r}"
            )
        for name in named.values():
            self._language(tokeniser, name)
        if named:
            ids = {number: name for name, number in _languages(tokeniser).items()}
            check_forced(self.path, ids, self.languages.target)

    def _language(self, tokeniser: Any, name: str) -> int:
        """Return the id of a language. Raises UserError if the tokeniser lacks it."""
        known = _languages(tokeniser)
        if name not in known:
            some = ", ".join(sorted(known)[:12])
            raise self._fault(f"expected a language such as {some}, found {name!r}")
        return known[name]

    def _fault(self, words: str) -> UserError:
        return UserError(f"--model {self.path}: {words}")


def _languages(tokeniser: Any) -> dict[str, int]:
    """Return the ids of languages, and of other added subwords, by their names."""
    own: Mapping[str, str] = getattr(tokeniser, "lang_code_to_token", {})  # M2M100's
    added = (token for token in tokeniser.get_added_vocab() if not token.startswith("<"))
    tokens = {token: token for token in added} | own
    return {name: tokeniser.convert_tokens_to_ids(token) for name, token in tokens.items()}


@dataclass(frozen=True)
class HookedTexts:
    """Pairs of text, `<split>.src` and `<split>.tgt` of a folder, for such a model."""

    model: HookedFolder
    path: Path

    def texts(self, split: str) -> tuple[Path, Path]:
        """Return source and target side of a split, plain text with a sentence a line."""
        src, tgt = (self.path / f"{split}.{side}" for side in SIDES)
        return src, tgt

    def read(self, split: str) -> TokenisedText:
        """Return the pairs of a split, with the first of several references."""
        src, tgt = (list(clean_lines(path)) for path in self.texts(split))
        if len(src) != len(tgt):
            source, target = self.texts(split)
            raise UserError(
                f"{source} has {len(src)} lines, {target.name} has {len(tgt)}; expected as many on "
                "both sides"
            )
        return self.model.text(src, [references(line)[0] for line in tgt])
