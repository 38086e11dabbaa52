"""BLEU under masks of an encoder-decoder that stays in Hugging Face's library, by its own search.

All masks of a test set are rows of as few searches as memory allows: the sources are repeated.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from headcount.ablation.masked_bleu import Inputs, Masked
from headcount.base.addresses import HeadGrid
from headcount.base.ranking import Heads, head_masks
from headcount.base.settings.decode import GenerateSettings
from headcount.model.machine import batches_of
from headcount.model.transformer import first_device
from headcount.search.sources import search_batches
from headcount_hf.hooks.hooked_folder import HookedFolder
from headcount_hf.hooks.hooked_seq2seq import HookedSeq2Seq
from headcount_hf.pretrained.families import check_languages

_ALWAYS = {"early_stopping": False, "do_sample": False}
"""Whatever the model's folder says: the search goes on while another hypothesis may win."""


@dataclass(frozen=True)
class HookedInputs(Inputs):
    """Such a model, text for it, and how its search is told to translate."""

    model: HookedFolder
    text: Path
    pair: str  # its languages, as in en-de
    generate: GenerateSettings

    def files(self, tests: Iterable[str]) -> list[Path]:
        """Return the files that shape translations of these test sets."""
        return [*self.model.files, *(path for test in tests for path in self.texts(test))]

    def languages(self) -> tuple[str, str]:
        """Return the languages that the flags name."""
        return self.pair, "as --src-lang and --tgt-lang say"

    def load(self) -> "HookedModel":
        """Return the model, ready to translate.

        Raises UserError where `HookedFolder.check` does, and for a model of other languages.
        """
        told = self.model.told
        codes = told.source or None, told.target or None
        check_languages(self.model.path, self.pair.split("-"), codes)
        model = self.model.load(self.generate.device)
        self.model.check()
        return HookedModel(model, self.model, self.pair.rpartition("-")[2], self.generate)


@dataclass(frozen=True)
class HookedModel(Masked):
    """A model, the folder with its tokeniser, its target language, and how it searches."""

    model: HookedSeq2Seq
    folder: HookedFolder
    tgt_lang: str
    generate: GenerateSettings

    @property
    def language(self) -> str:
        """Return the target language, for sacreBLEU."""
        return self.tgt_lang

    @property
    def grid(self) -> HeadGrid:
        """Return the model's heads."""
        return self.model.grid

    def search(self) -> dict[str, Any]:
        """Return settings that shape translations; all else is as the model's folder says."""
        shaping = {"beam", "length_penalty", "max_new_tokens"}
        return {"search": "generate", **self.generate.model_dump(include=shaping), **_ALWAYS}

    def translations(
        self, lines: list[str], sets: list[Heads], done: Callable[[int], object]
    ) -> dict[Heads, list[str]]:
        """Return the lines, translated with each set of heads masked; each set is named once."""
        masks = torch.from_numpy(head_masks(sets, self.grid.size)).to(first_device(self.model))
        rows = masks.repeat_interleave(len(lines), dim=0)
        repeated, budget = self.folder.sources(lines) * len(sets), self.generate.batch_tokens
        found = [""] * len(repeated)
        with batches_of("generate", budget):
            for numbers in search_batches(repeated, budget):
                sources = [repeated[n] for n in numbers]
                ids = self.model.generate(sources, self._options(), rows[numbers])
                for number, line in zip(numbers, self.folder.lines(ids), strict=True):
                    found[number] = line
                done(len(numbers))
        each = iter(found)
        return {heads: list(islice(each, len(lines))) for heads in sets}

    def _options(self) -> dict[str, Any]:
        """Return arguments of the library's search."""
        asked = self.generate
        return self.folder.target_options() | {
            "num_beams": asked.beam,
            "length_penalty": asked.length_penalty,
            "max_new_tokens": asked.max_new_tokens,
            **_ALWAYS,
        }
