"""BLEU under masks of an encoder-decoder that stays in Hugging Face's library, by its own search.

Rows of one search translate the same sources under many masks.
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
"""Search settings that the model's folder cannot change."""


@dataclass(frozen=True)
class HookedInputs(Inputs):
    """A model's folder, text for it, and settings of its search."""

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
        """Return the model. Raises UserError for other languages, or as `HookedFolder.check`."""
        languages = self.model.languages
        codes = languages.source or None, languages.target or None
        check_languages(self.model.path, self.pair.split("-"), codes)
        model = self.model.load(self.generate.device)
        self.model.check()
        return HookedModel(model, self.model, self.pair.rpartition("-")[2], self.generate)


@dataclass(frozen=True)
class HookedModel(Masked):
    """A model, the folder with its tokeniser, its target language, and settings of its search."""

    model: HookedSeq2Seq
    folder: HookedFolder
    tgt_lang: str
    generate: GenerateSettings

    @property
    def language(self) -> str:
        """The target language, for sacreBLEU."""
        return self.tgt_lang

    @property
    def grid(self) -> HeadGrid:
        """The model's heads."""
        return self.model.grid

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
            for numbers in search_batches(repeated, budget):
                ids = self.model.generate([repeated[n] for n in numbers], options, rows[numbers])
                for number, line in zip(numbers, self.folder.lines(ids), strict=True):
                    texts[number] = line
                done(len(numbers))
        remaining = iter(texts)
        return {heads: list(islice(remaining, len(lines))) for heads in sets}
