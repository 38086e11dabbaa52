"""A model that stays in Hugging Face's library, for Python programs, with lists of lines."""

import copy
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import torch

from headcount.base.errors import UserError
from headcount.base.settings.decode import GenerateSettings
from headcount.base.settings.model import ModelSettings
from headcount.data.batches import ParallelText
from headcount.deployment.export import Form, write_form
from headcount.heads.linked_text import LinkedText
from headcount.library.linking import Named, cross_heads
from headcount.library.measured import Masked, Measured, check_pairs, cleaned, firsts, listed
from headcount.library.model import origin_of
from headcount_hf.export.aligned import export_whisper
from headcount_hf.hooks.hooked_folder import HookedFolder, HookedInputs, HookedModel
from headcount_hf.hooks.hooked_links import read_linked
from headcount_hf.hooks.hooked_seq2seq import HookedSeq2Seq
from headcount_hf.hooks.hooked_sound import SoundFolder
from headcount_hf.pretrained.families import CONFIG, check_languages, stated

_GENERATE = GenerateSettings()


def hook(
    folder: str | Path,
    src_lang: str,
    tgt_lang: str,
    prefix: str = "",
    codes: Sequence[str] = ("", ""),
    device: str = "auto",
) -> "HookedLines":
    """Return a model of Hugging Face's library with a multiplier on every head.

    The model stays as it is. `prefix`: text before every source, such as T5's instruction. `codes`:
    the model's names of both languages, if it has several. A Whisper transcribes if both languages
    are the same, and translates otherwise.
    """
    path = Path(folder)
    if stated(path / CONFIG, "model_type") == "whisper":
        opened: HookedFolder = SoundFolder(path, src_lang, tgt_lang)
    else:
        opened = HookedFolder(path, *codes, prefix)
        check_languages(path, (src_lang, tgt_lang), codes)
    module = opened.load(device)
    opened.check()
    return HookedLines(opened, module, f"{src_lang}-{tgt_lang}")


@dataclass(frozen=True)
class HookedLines(Measured):
    """A model with hooks on its heads, from `headcount.hook`.

    Text is a list of lines, one sentence each. Sources of a Whisper are arrays of 16,000 samples a
    second.
    """

    folder: HookedFolder
    network: HookedSeq2Seq
    languages: str  # as in en-de

    @property
    def module(self) -> HookedSeq2Seq:
        """The PyTorch module, whose heads have multipliers."""
        return self.network

    @property
    def path(self) -> Path:
        """Folder of the model."""
        return self.folder.path

    @property
    def settings(self) -> ModelSettings:
        """Sizes of the model, as far as ours can state them."""
        config, heads = self.module.model.config, self.module.grid.counts
        width = next(joined.d_head for *_, joined in self.module.attentions())
        return ModelSettings(
            encoder_layers=len(heads["enc_self"]),
            decoder_layers=len(heads["dec_self"]),
            heads={kind: list(layers) for kind, layers in heads.items()},
            d_head=width,
            d_model=config.hidden_size,
            d_ff=getattr(config, "d_ff", None) or getattr(config, "encoder_ffn_dim", 1),
        )

    def _files(self) -> list[Path]:
        """Return the files that the model was read from."""
        return self.folder.files

    def translate(
        self, sources: Sequence[Any], mask: Masked = (), decode: GenerateSettings | None = None
    ) -> list[str]:
        """Return translations by the library's beam search."""
        heads = self._silent(mask)
        return self._translator(decode).translations(
            self._lines(sources), [heads], lambda sentences: None
        )[heads]

    def without(self, mask: Masked) -> Self:
        """Return a copy in which these heads give 0. It has as many heads as before."""
        kept, module = self.mask(mask), copy.deepcopy(self.module)
        with torch.no_grad():
            for kind, layer, joined in module.attentions():
                gates = torch.from_numpy(kept[module.grid.span(kind, layer)]).float()
                weight = joined.output.weight
                weight.mul_(gates.repeat_interleave(joined.d_head).to(weight.device))
        return replace(self, network=module)

    def export(self, out: str | Path, to: str = "huggingface", alignment: Named = ()) -> str:
        """Write the model as Hugging Face's library does, and return a summary."""
        if to != "huggingface":
            raise UserError(f"to: expected huggingface for a model that stays there, found {to!r}")
        theirs, origin = self.folder, origin_of(self.folder.files)
        if alignment:
            heads = cross_heads(alignment, self.module.grid)
            return export_whisper(theirs.path, heads, Path(out), origin)
        summary = f"a {self.module.model.config.model_type} of the Hugging Face library"
        form = Form(self.module.model.save_pretrained, (), summary)
        kept = [path for path in theirs.files if path.suffix != ".safetensors"]
        return write_form(form, kept, Path(out), origin, [theirs.path])

    def _translator(self, decode: GenerateSettings | None = None) -> HookedModel:
        nothing = Path(os.devnull)
        inputs = HookedInputs(self.folder, nothing, self.languages, decode or _GENERATE)
        return HookedModel(inputs, self.module)

    def _spelt(self, targets: Sequence[str]) -> list[str]:
        return listed(targets)

    def _lines(self, sources: Sequence[Any]) -> list[Any]:
        is_sound = isinstance(self.folder, SoundFolder)
        return listed(sources) if is_sound else cleaned(sources)

    def _text(self, sources: Sequence[Any], targets: Sequence[str]) -> ParallelText:
        check_pairs(sources, targets)
        return self.folder.text(self._lines(sources), cleaned(firsts(targets)))

    def _linked(
        self, sources: Sequence[str], targets: Sequence[str], links: Sequence[str] | None
    ) -> LinkedText:
        if isinstance(self.folder, SoundFolder):
            raise UserError("alignment: expected a model with source words, found one of sound")
        first = self.folder.prefix.split()
        split = {"is_split_into_words": True}
        sides = [[*first, *line.split()] for line in cleaned(sources)]
        words = [line.split() for line in cleaned(firsts(targets))]
        cut = [
            self.folder.tokeniser(sides, **split),
            self.folder.tokeniser(text_target=words, **split),
        ]
        ids = (side["input_ids"] for side in cut)
        return read_linked(self.folder.pairs(*ids), cut, links, len(first))
