"""A translation model for Python programs, with lists in place of files."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from headcount.ablation.masked_bleu import MaskedModel
from headcount.ablation.masking import resamples_for
from headcount.base.errors import UserError
from headcount.base.files import check_apart, sha256
from headcount.base.ranking import Heads
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.heads import ImportanceSettings
from headcount.base.settings.model import ModelSettings
from headcount.data.batches import Ids, ParallelText
from headcount.data.bpe import Segmenter
from headcount.data.lines import references
from headcount.data.text import clean
from headcount.deployment.export import Deployed, Mask, own_form, write_export
from headcount.heads.importance import measure_importance
from headcount.library.linking import (
    Named,
    alignment_frame,
    cross_heads,
    link_words,
    read_links,
)
from headcount.model.transformer import Transformer
from headcount.scoring.bleu import Score, score_corpus
from headcount.scoring.bootstrap import Difference
from headcount.search.translation import OwnSearch, translate_lines
from headcount.store.kept_heads import read_mask
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount.training.score import mean_loss

_DECODE, _IMPORTANCE = DecodeSettings(), ImportanceSettings()


def load(folder: str | Path, subwords: str | Path | None = None, device: str = "auto") -> "Model":
    """Return the model in a folder that training, removing or `Model.save` wrote.

    `subwords`: folder of the segmented pair, if the model's folder has none. `device`: cpu, cuda or
    auto. Raises UserError for an incomplete folder, other subwords, or another device.
    """
    source = ModelFolder(Path(folder))
    pair = source.pair(subwords and Path(subwords))
    return Model.open(source, pair, device=device)


def import_pretrained(
    folder: str | Path,
    src_lang: str,
    tgt_lang: str,
    out: str | Path,
    codes: Sequence[str | None] = (None, None),
    device: str = "auto",
) -> "Model":
    """Write a model of Hugging Face's library as one of ours, with its subwords, and load it.

    `codes`: the model's codes of both languages, where they are not their names. Raises UserError
    for a model that ours cannot express, and for damaged or missing files.
    """
    from headcount_hf.pretrained import imports, segment  # need the packages of an extra

    theirs, none = Path(folder), (Path(os.devnull),) * 2  # without text
    check_apart(Path(out), [theirs])
    with tempfile.TemporaryDirectory() as work:
        pieces, model = Path(work, "pieces"), Path(work, "model")
        segment.segment_pretrained(theirs, (src_lang, tgt_lang), none, none, pieces, codes)
        origin = origin_of(imports.imported_files(theirs))
        imports.write_imported(theirs, PairFolder(pieces), model, origin)
        load(model, pieces, "cpu").save(out)
    return load(out, device=device)


class Model(Deployed):
    """A translation model with its segmenters, from `load` or `headcount.import_pretrained`.

    Text is a list of plain lines, one sentence in a line. A mask names masked heads by their
    addresses, `<kind>.<layer>.<head>` counted from 0, or files with addresses.
    """

    @cached_property
    def _sides(self) -> tuple[Segmenter, Segmenter]:
        return self.pair.segmenters()

    @property
    def module(self) -> Transformer:
        """The PyTorch module."""
        return self.model

    @property
    def settings(self) -> ModelSettings:
        """Sizes of the model."""
        return self.module.settings

    @property
    def heads(self) -> list[str]:
        """Addresses of the heads, in the order of every multiplier."""
        return [head.name() for head in self.module.grid.heads()]

    @property
    def first_heads(self) -> list[str]:
        """Addresses of the same heads in the original model, before heads were removed."""
        return [head.name() for head in self.originals]

    def mask(self, mask: Mask) -> np.ndarray:
        """Return the multipliers of heads, [heads], 0 for a masked head."""
        return read_mask(mask, self.module.grid)

    def encode(self, line: str) -> Ids:
        """Return the ids of a line of the source language, without start or end."""
        return self._sides[0].encode(_clean([line])[0])

    def decode(self, ids: Ids) -> str:
        """Return the detokenised line of ids. Raises UserError for an unknown id."""
        size = len(self._sides[1].vocabulary)
        if wrong := [number for number in ids if not 0 <= number < size]:
            raise UserError(f"expected ids of the target from 0 to {size - 1}, found {wrong[0]}")
        return self._sides[1].decode(ids)

    def translate(
        self, lines: Sequence[str], mask: Mask = (), decode: DecodeSettings = _DECODE
    ) -> list[str]:
        """Return translations of lines by beam search. An empty line stays empty."""
        search = OwnSearch(self.module, self._sides, decode, self._multiplier(mask))
        return translate_lines(search, _clean(lines))[0]

    def loss(self, sources: Sequence[str], targets: Sequence[str], mask: Mask = ()) -> float:
        """Return the loss per target token of given translations, in nats."""
        text = self._text(sources, targets)
        return mean_loss(self.module, text, _DECODE.batch_tokens, self._multiplier(mask))

    def bleu(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        mask: Mask = (),
        decode: DecodeSettings = _DECODE,
    ) -> Score:
        """Return BLEU, 0 to 100. Several references of a line have tabs between them."""
        spelt = self._spelt(targets)  # before the long search, to refuse a text
        translations = self.translate(sources, mask, decode)
        return score_corpus(translations, spelt, self._sides[1].language)[0]

    def importance(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        settings: ImportanceSettings = _IMPORTANCE,
    ) -> dict[str, float]:
        """Return importance of heads on all these pairs, by address."""
        values = measure_importance(self.module, self._text(sources, targets), settings)
        return dict(zip(self.heads, values.tolist(), strict=True))

    def ablate(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        masks: Mapping[str, Mask] | None = None,
        decode: DecodeSettings = _DECODE,
    ) -> dict[str, Difference]:
        """Return differences of BLEU under named masks, or without each head, to no mask."""
        named = {head: [head] for head in self.heads} if masks is None else masks
        sets = {name: self._silent(mask) for name, mask in named.items()}
        masked = MaskedModel(self.module, *self._sides, decode)
        texts = (_clean(sources), self._spelt(targets))
        differences = masked.compare(texts, list(sets.values()), resamples_for(self.module.grid))
        return {name: differences[silent] for name, silent in sets.items()}

    def alignment(
        self, sources: Sequence[str], targets: Sequence[str], links: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Return alignment error rates of heads on these pairs, with the columns of alignment.csv.

        `links`: a string such as `0-0 1p2` for every pair. Words stand between spaces.
        """
        firsts = [references(line)[0] for line in _listed(targets)]
        text = read_links(_clean(sources), _clean(firsts), links, self._sides)
        return alignment_frame(self.module, text, _DECODE.batch_tokens)

    def align(
        self,
        source: str | Sequence[str],
        target: str | Sequence[str] | None = None,
        heads: Named | None = None,
    ) -> Any:
        """Return links (source word, target word) of a sentence pair, or of every pair of lists.

        Without a target, return the translation and its links. Words stand between spaces. `heads`:
        addresses whose mean weights count, by default all in the last layer.
        """
        if isinstance(source, str):
            lists = self.align([source], None if target is None else [target], heads)
            return lists[0] if target is not None else (lists[0][0], lists[1][0])
        given = cross_heads(heads, self.module.grid)
        targets = self.translate(source) if target is None else _listed(target)
        text = read_links(_clean(source), _clean(targets), [""] * len(targets), self._sides)
        links = link_words(self.module, text, given, _DECODE.batch_tokens)
        return links if target is not None else (targets, links)

    def save(self, out: str | Path) -> str:
        """Write a folder that `load` and every command accept, and return a summary.

        Raises UserError if something else than an earlier export is there.
        """
        what = self.on_cpu()
        return write_export(what, own_form(what), Path(out), self._origin())

    def export(
        self,
        out: str | Path,
        to: str,
        pretrained: str | Path | None = None,
        alignment: Named | None = None,
    ) -> str:
        """Write a folder for `ctranslate2` or `huggingface`, and return a summary.

        `pretrained`: for `huggingface`, the folder from which the model was imported. `alignment`:
        addresses of heads that align, which CTranslate2 shows as attention.
        """
        from headcount_hf.export.aligned import Aligned  # need the packages of an extra
        from headcount_hf.export.export import export_model

        theirs, aligned = pretrained and Path(pretrained), None
        if alignment is not None:
            grid = self.module.grid
            places = map(grid.index, cross_heads(alignment, grid))
            aligned = Aligned.of([self.originals[place] for place in places])
        return export_model(self, to, theirs, Path(out), self._origin(), aligned=aligned)

    def _origin(self) -> dict[str, Any]:
        return origin_of([*self.source.files, *self.pair.files()])

    def _multiplier(self, mask: Mask) -> Tensor | None:
        return torch.from_numpy(self.mask(mask)) if mask else None

    def _silent(self, mask: Mask) -> Heads:
        """Return places of masked heads. Raises UserError for gates between 0 and 1."""
        multiplier = self.mask(mask)
        if not np.isin(multiplier, (0, 1)).all():
            raise UserError("masks: expected masked heads, found gates between 0 and 1")
        return tuple(np.flatnonzero(multiplier == 0).tolist())

    def _spelt(self, targets: Sequence[str]) -> list[str]:
        """Return references in the spelling of the model's text."""
        return [self._sides[1].normalise(line) for line in _listed(targets)]

    def _text(self, sources: Sequence[str], targets: Sequence[str]) -> ParallelText:
        """Return the pairs as ids, with the first of several references."""
        if len(sources) != len(targets) or not len(sources):
            counts = f"{len(sources)} and {len(targets)}"
            raise UserError(f"expected as many sources as targets and at least one, found {counts}")
        firsts = [references(line)[0] for line in _listed(targets)]
        src, tgt = (
            [side.encode(line) for line in _clean(lines)]
            for side, lines in zip(self._sides, (sources, firsts), strict=True)
        )
        return ParallelText(src, tgt)


def _clean(lines: Sequence[str]) -> list[str]:
    """Return the lines as scripts clean them. Raises UserError for a text in place of a list."""
    return list(map(clean, _listed(lines)))


def _listed(lines: Sequence[str]) -> list[str]:
    """Return the lines. Raises UserError for a text, whose letters would be taken for lines."""
    if isinstance(lines, str):
        raise UserError("expected a list of lines, found one text; put it in [ ]")
    return list(lines)


def origin_of(files: list[Path]) -> dict[str, Any]:
    """Return the provenance record of an export from Python."""
    return {"made_by": "headcount, from Python", "inputs": {f.name: sha256(f) for f in files}}
