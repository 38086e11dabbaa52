"""A translation model for Python programs, with lists in place of files."""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from headcount.ablation.masked_bleu import MaskedModel
from headcount.base.errors import UserError
from headcount.base.files import check_apart, sha256
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.heads import RolesSettings
from headcount.base.settings.model import ModelSettings
from headcount.data.batches import Ids, ParallelText
from headcount.data.bpe import Segmenter
from headcount.data.lines import write_lines
from headcount.deployment.export import Deployed, own_form, write_export
from headcount.heads.linked_text import LinkedText
from headcount.heads.roles import write_roles
from headcount.library.linking import Named, cross_heads, link_words, read_links
from headcount.library.measured import (
    BUDGET,
    Masked,
    Measured,
    addresses,
    check_pairs,
    cleaned,
    firsts,
    listed,
)
from headcount.model.transformer import Transformer
from headcount.model.units import UnitTransformer
from headcount.search.translation import OwnSearch, translate_lines
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

_DECODE = DecodeSettings()


def load(folder: str | Path, subwords: str | Path | None = None, device: str = "auto") -> "Model":
    """Return the model in a folder that training, removing or `Model.save` wrote."""
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

    `codes`: the model's codes of both languages, where they are not their names.
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


class Model(Deployed, Measured):
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
    def languages(self) -> str:
        """Source and target language, as in en-de."""
        return "-".join(side.language for side in self._sides)

    @property
    def path(self) -> Path:
        """Folder of the model."""
        return self.source.path

    @property
    def settings(self) -> ModelSettings:
        """Sizes of the model."""
        return self.module.settings

    @property
    def first_heads(self) -> list[str]:
        """Addresses of the same heads in the original model, before heads were removed."""
        return [head.name() for head in self.originals]

    def encode(self, line: str) -> Ids:
        """Return the ids of a line of the source language, without start or end."""
        return self._sides[0].encode(cleaned([line])[0])

    def decode(self, ids: Ids) -> str:
        """Return the detokenised line of ids. Raises UserError for an unknown id."""
        size = len(self._sides[1].vocabulary)
        if wrong := [number for number in ids if not 0 <= number < size]:
            raise UserError(f"expected ids of the target from 0 to {size - 1}, found {wrong[0]}")
        return self._sides[1].decode(ids)

    def translate(
        self, sources: Sequence[str], mask: Masked = (), decode: DecodeSettings | None = None
    ) -> list[str]:
        """Return translations of lines by beam search. An empty line stays empty."""
        search = OwnSearch(self.module, self._sides, decode or _DECODE, self._multiplier(mask))
        return translate_lines(search, cleaned(sources))[0]

    def with_units(self) -> Self:
        """Return the same model, whose measures and masks know feed-forward units and layers."""
        return replace(self, model=UnitTransformer.of(self.model))

    def without(self, mask: Masked) -> Self:
        """Return a smaller model without the units. The others are numbered again in a layer."""
        return super().without(addresses(mask))

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
        given = cross_heads(heads, self.settings.grid)
        targets = self.translate(source) if target is None else listed(target)
        text = read_links(cleaned(source), cleaned(targets), [""] * len(targets), self._sides)
        links = link_words(self.module, text, given, BUDGET)
        return links if target is not None else (targets, links)

    def save(self, out: str | Path) -> str:
        """Write a folder that `load` and every command accept, and return a summary."""
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
            grid = self.settings.grid
            places = map(grid.index, cross_heads(alignment, grid))
            aligned = Aligned.of([self.originals[place] for place in places])
        return export_model(self, to, theirs, Path(out), self._origin(), aligned=aligned)

    def _files(self) -> list[Path]:
        """Return the files that the model was read from."""
        return [*self.source.files, *self.pair.files()]

    def _weights(self) -> str:
        """Return the checksum of the model's file, or of weights without units or pieces."""
        same = self.settings == self.source.settings and not self.cut
        return sha256(*self.source.weight_files) if same else super()._weights()

    _has_roles = True

    def _write_roles(self, sources: Sequence[str], targets: Sequence[str], out: Path) -> None:
        """Write what heads attend to, as scripts/roles.py does."""
        text, origin = self._text(sources, targets), self._provenance()
        with tempfile.TemporaryDirectory() as work:
            folder = Path(work, "model")
            replace(self, originals=self.settings.grid.heads()).save(folder)
            model, pair = ModelFolder(folder), PairFolder(folder)
            for split in ("train", "dev"):
                sides = zip(
                    pair.texts(split), pair.vocabularies(), (text.src, text.tgt), strict=True
                )
                for path, words, ids in sides:
                    write_lines(path, (" ".join(words.pieces(line)) for line in ids))
            write_roles(model, pair, [], RolesSettings(), out, origin)

    def _origin(self) -> dict[str, Any]:
        return origin_of(self._files())

    def _translator(self, decode: DecodeSettings | None = None) -> MaskedModel:
        return MaskedModel(self.module, *self._sides, decode or _DECODE)

    def _spelt(self, targets: Sequence[str]) -> list[str]:
        return [self._sides[1].normalise(line) for line in listed(targets)]

    def _text(self, sources: Sequence[str], targets: Sequence[str]) -> ParallelText:
        check_pairs(sources, targets)
        src, tgt = (
            [side.encode(line) for line in cleaned(lines)]
            for side, lines in zip(self._sides, (sources, firsts(targets)), strict=True)
        )
        return ParallelText(src, tgt)

    def _linked(
        self, sources: Sequence[str], targets: Sequence[str], links: Sequence[str] | None
    ) -> LinkedText:
        return read_links(cleaned(sources), cleaned(firsts(targets)), links, self._sides)


def origin_of(files: list[Path]) -> dict[str, Any]:
    """Return the provenance record of an export from Python."""
    return {"made_by": "headcount, from Python", "inputs": {f.name: sha256(f) for f in files}}
