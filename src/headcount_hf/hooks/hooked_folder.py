"""The folder of an encoder-decoder that stays in Hugging Face's library, and text for it.

They stand where the folders of our own models and of segmented pairs do.
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
    """Languages and task of a model that knows several; empty: not told."""

    source: str = ""  # its name of the source language, such as eng_Latn
    target: str = ""
    prefix: str = ""  # in front of every source, such as "translate English to German: "


@dataclass(frozen=True)
class HookedFolder:
    """A model and its tokeniser, as the library saves them."""

    path: Path
    told: Told = Told()

    @property
    def files(self) -> list[Path]:
        """Return all files that may be read."""
        return input_files(self.path)

    @property
    def weight_files(self) -> list[Path]:
        """Return all files of its weights, which tell it from other models."""
        return sorted(self.path.glob("*.safetensors"))

    @cached_property
    def _loaded(self) -> tuple[Any, HookedSeq2Seq]:
        """Return tokeniser and model, in fp32."""
        if not self.path.is_dir():
            raise UserError(f"--model {self.path}: expected a folder, found none; copy one here")
        languages = {"src_lang": self.told.source, "tgt_lang": self.told.target}
        named = {key: name for key, name in languages.items() if name}
        theirs, tokeniser = open_whole(self.path), open_tokeniser(self.path, **named)
        check_legacy(self.path, tokeniser)
        self._check_languages(tokeniser, named)
        model = HookedSeq2Seq(theirs)
        words, rows = len(tokeniser), theirs.get_input_embeddings().num_embeddings
        if words > rows:
            raise UserError(
                f"--model {self.path}: its tokeniser has {words} subwords, its embedding {rows} "
                "rows; expected the tokeniser that it was trained with"
            )
        return tokeniser, model

    @property
    def tokeniser(self) -> Any:
        """Return the library's tokeniser. Raises what loading the model does."""
        return self._loaded[0]

    def load(self, device: str = "auto") -> HookedSeq2Seq:
        """Return the model, in evaluation mode.

        Raises UserError for a folder without a whole encoder-decoder, one whose attention is not
        known, a tokeniser of another model, and a language that it does not have; EnvironmentFault
        where the library or the device is missing.
        """
        place = pick_device(device)
        return self._loaded[1].to(place)

    def check(self, texts: "HookedTexts | None" = None) -> None:
        """Raise UserError where masks of single sentences do not act on these alone.

        Model and tokeniser lie in one folder, so that any text fits them.
        """
        self._loaded[1].check(self.text([""], ["a"]))

    def text(self, sources: Sequence[str], targets: Sequence[str]) -> TokenisedText:
        """Return pairs of lines, with all that the tokeniser adds."""
        said, start = self._ids("text_target", targets), None
        if _BEGINS in self.target_options():
            # Behind the end stands what the target begins with; nobody says it there.
            start, said = self.target_options()[_BEGINS], [ids[:-1] for ids in said]
        return self._loaded[1].text(self.sources(sources), said, start)

    def sources(self, lines: Sequence[str]) -> list[Ids]:
        """Ids of source lines."""
        return self._ids("text", [self.told.prefix + line for line in lines])

    def lines(self, found: torch.Tensor) -> list[str]:
        """Return the text of ids that the search gives."""
        return self.tokeniser.batch_decode(found, skip_special_tokens=True)

    def target_options(self) -> dict[str, int]:
        """Return arguments of the search for the target language."""
        if not self.told.target:
            return {}
        language = self._language(self.tokeniser, self.told.target)
        (empty,) = self._ids("text_target", [""])
        # In front of every target, or, as in mBART's first version, what each begins with.
        return {"forced_bos_token_id" if empty[0] == language else _BEGINS: language}

    def _ids(self, side: str, lines: Sequence[str]) -> list[Ids]:
        """Ids of lines of a side, `text` or `text_target`, as the tokeniser calls them."""
        return self.tokeniser(**{side: list(lines)})["input_ids"] if lines else []

    def _check_languages(self, tokeniser: Any, named: Mapping[str, str]) -> None:
        several = hasattr(tokeniser, "src_lang")
        if several and len(named) < 2:
            raise self._fault(
                "expected the names of both languages, since it has several; give --src-code and "
                "--tgt-code, such as eng_Latn and deu_Latn"
            )
        if named and not several:
            raise self._fault(
                "expected no --src-code or --tgt-code, as its tokeniser is not told languages, "
                f"found {', '.join(named.values())}; what its sources begin with is --prefix"
            )
        # Codes of a Marian stand before sources.
        codes = [each for each in getattr(tokeniser, "encoder", ()) if re.fullmatch(">>.+<<", each)]
        if len(codes) > 1 and not self.told.prefix.startswith(tuple(codes)):
            raise self._fault(
                f"expected a --prefix that begins with the code of a target language, "
                f"{codes[0]} or one of {len(codes) - 1} more, found {self.told.prefix!r}"
            )
        for name in named.values():
            self._language(tokeniser, name)
        if named:
            ids = {number: name for name, number in _languages(tokeniser).items()}
            check_forced(self.path, ids, self.told.target)

    def _language(self, tokeniser: Any, name: str) -> int:
        known = _languages(tokeniser)
        if name not in known:
            raise self._fault(
                f"expected a language that it has, found {name!r}; among its special subwords are "
                f"{', '.join(sorted(known)[:12])}"
            )
        return known[name]

    def _fault(self, words: str) -> UserError:
        return UserError(f"--model {self.path}: {words}")


def _languages(tokeniser: Any) -> dict[str, int]:
    """Return the ids of languages, and of other subwords that were added, by their names."""
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
        """Return source and target side of a split, plain text, a sentence a line."""
        src, tgt = (self.path / f"{split}.{side}" for side in SIDES)
        return src, tgt

    def read(self, split: str) -> TokenisedText:
        """The pairs of a split; of several references the first. Raises UserError unless both
        sides have as many lines."""
        src, tgt = (list(clean_lines(path)) for path in self.texts(split))
        if len(src) != len(tgt):
            raise UserError(
                f"{self.texts(split)[0]} has {len(src)} lines, {self.texts(split)[1].name} has "
                f"{len(tgt)}; expected as many on both sides"
            )
        return self.model.text(src, [references(line)[0] for line in tgt])
