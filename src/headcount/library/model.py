"""A translation model in a Python program: what the commands do, with lists in place of files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headcount.ablation.ablation import resamples_for
from headcount.ablation.masked_bleu import MaskedModel
from headcount.base.errors import UserError
from headcount.base.files import sha256
from headcount.base.ranking import Heads
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.importance import ImportanceSettings
from headcount.base.settings.model import ModelSettings
from headcount.data.batches import Ids, ParallelText
from headcount.data.lines import LineTally, references
from headcount.data.text import clean
from headcount.deployment.deployed import Deployed
from headcount.deployment.export import own_form, write_export
from headcount.heads.importance import measure_importance
from headcount.model.transformer import Transformer
from headcount.scoring.bleu import Score, score_corpus
from headcount.scoring.bootstrap import Difference
from headcount.search.translation import OwnSearch, translate_lines
from headcount.store.kept_heads import read_mask
from headcount.store.model_folder import ModelFolder
from headcount.training.score import mean_loss

Mask = Sequence[str | Path] | str | Path
"""Heads by address, such as enc_self.0.3, and files; see `read_mask`."""

_DECODE, _IMPORTANCE = DecodeSettings(), ImportanceSettings()


def load(folder: str | Path, subwords: str | Path | None = None, device: str = "auto") -> "Model":
    """The model in a folder, such as training, removing or `Model.save` writes.

    `subwords`: the folder of the segmented pair, where the model's own has none. `device`: cpu,
    cuda, or auto. Raises UserError for a folder that lacks something, for other subwords, and for
    another device.
    """
    source = ModelFolder(Path(folder))
    pair = source.pair(None if subwords is None else Path(subwords))
    return Model(Deployed.open(source, pair, device=device))


class Model:
    """A translation model, and what cuts its text into subwords.

    Text is plain: a list of lines, a sentence each. A mask names silent heads by their addresses,
    `<kind>.<layer>.<head>` counted from 0, or files that do; a model without heads is another one.
    """

    def __init__(self, what: Deployed):
        """`load` and `headcount.import_pretrained` make one."""
        self._what = what
        self._sides = what.pair.segmenters()

    @property
    def module(self) -> Transformer:
        """The model itself, for torch."""
        return self._what.model

    @property
    def settings(self) -> ModelSettings:
        """Its sizes."""
        return self.module.settings

    @property
    def heads(self) -> list[str]:
        """The addresses of its heads, in the order of every multiplier."""
        return [head.name() for head in self.module.grid.heads()]

    @property
    def first_heads(self) -> list[str]:
        """What the same heads were called in the model that none had been removed from."""
        return [head.name() for head in self._what.heads]

    def mask(self, mask: Mask) -> np.ndarray:
        """The multiplier of each head, [heads]: 0 silences it."""
        return read_mask(mask, self.module.grid)

    def encode(self, line: str) -> Ids:
        """Ids of a line of the source language, without start or end."""
        return self._sides[0].encode(_clean([line])[0])

    def decode(self, ids: Ids) -> str:
        """The detokenised line of ids of the target language.

        Raises UserError for an id that its vocabulary does not have.
        """
        size = len(self._sides[1].vocabulary)
        for wrong in (each for each in ids if not 0 <= each < size):
            raise UserError(
                f"expected ids from 0 to {size - 1}, found {wrong}; the target's vocabulary has "
                f"{size} subwords"
            )
        return self._sides[1].decode(ids)

    def translate(
        self, lines: Sequence[str], mask: Mask = (), decode: DecodeSettings = _DECODE
    ) -> list[str]:
        """The translation of each line by beam search; an empty line stays empty."""
        search = OwnSearch(self.module, self._sides, decode, self._multiplier(mask))
        return translate_lines(search, _clean(lines))[0]

    def loss(self, sources: Sequence[str], targets: Sequence[str], mask: Mask = ()) -> float:
        """Loss per target token of given translations, nats; smaller is better."""
        text = self._text(sources, targets)
        return mean_loss(self.module, text, _DECODE.batch_tokens, self._multiplier(mask))

    def bleu(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        mask: Mask = (),
        decode: DecodeSettings = _DECODE,
    ) -> Score:
        """BLEU of its translations, points from 0 to 100, with sacreBLEU's signature.

        Several references of a line have tabs between them. They are written as the model's text
        was: in lower case where that was.
        """
        spelt = self._spelt(targets)
        found = self.translate(sources, mask, decode)
        return score_corpus(found, spelt, self._sides[1].language)[0]

    def importance(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        settings: ImportanceSettings = _IMPORTANCE,
    ) -> dict[str, float]:
        """Importance of each head on these pairs, by address; larger is more important.

        `settings`: as in an experiment; what they say of drawing sentences is passed over, for all
        pairs are taken.
        """
        text = self._text(sources, targets)
        values = measure_importance(self.module, text, settings)
        return dict(zip(self.heads, values.tolist(), strict=True))

    def ablate(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        masks: Mapping[str, Mask] | None = None,
        decode: DecodeSettings = _DECODE,
    ) -> dict[str, Difference]:
        """What BLEU does under each mask, beside no mask, by paired bootstrap over sentences.

        `masks` have names of your own; without any, each head is silent alone, named by its
        address.
        """
        named = {head: [head] for head in self.heads} if masks is None else masks
        sets = {name: self._silent(mask) for name, mask in named.items()}
        masked = MaskedModel(self.module, *self._sides, decode)
        samples = resamples_for(self.module.grid)
        texts = (_clean(sources), self._spelt(targets))
        found = masked.compare(texts, list(sets.values()), samples)
        return {name: found[silent] for name, silent in sets.items()}

    def without(self, mask: Mask) -> "Model":
        """A smaller model that lacks the heads; those left count anew from 0 in each layer."""
        return Model(self._what.without(mask))

    def save(self, out: str | Path) -> str:
        """Write a folder that `load` and every command take, with its subwords; tells what it is.

        Raises UserError if something else lies there than an earlier export.
        """
        what = self._what.on_cpu()
        return write_export(what, own_form(what), Path(out), self._origin())

    def export(self, out: str | Path, to: str, pretrained: str | Path | None = None) -> str:
        """Write a folder for `ctranslate2` or `huggingface`, as scripts/export.py does.

        `pretrained`: the folder that it was imported from, for `huggingface`. Tells what it is.
        """
        from headcount_hf.export.export import export_model  # with an extra's packages alone

        theirs = None if pretrained is None else Path(pretrained)
        return export_model(self._what, to, theirs, Path(out), self._origin())

    def _origin(self) -> dict[str, Any]:
        return origin_of([*self._what.source.files, *self._what.pair.files()])

    def _multiplier(self, mask: Mask) -> Tensor | None:
        multiplier = self.mask(mask)
        return None if (multiplier == 1).all() else torch.from_numpy(multiplier)

    def _silent(self, mask: Mask) -> Heads:
        """Places of silent heads. Raises UserError for gates between 0 and 1."""
        multiplier = self.mask(mask)
        if not np.isin(multiplier, (0, 1)).all():
            raise UserError("masks: expected heads that are silent or not, found gates between")
        return tuple(np.flatnonzero(multiplier == 0).tolist())

    def _spelt(self, targets: Sequence[str]) -> list[str]:
        """References, written as the model's text was."""
        return [self._sides[1].normalise(line) for line in _listed(targets)]

    def _text(self, sources: Sequence[str], targets: Sequence[str]) -> ParallelText:
        """The pairs as ids; of several references the first."""
        if len(sources) != len(targets) or not len(sources):
            raise UserError(
                f"expected a target for each source, and at least one; found {len(sources)} "
                f"sources and {len(targets)} targets"
            )
        firsts = [references(line)[0] for line in _listed(targets)]
        src, tgt = (
            [side.encode(line) for line in _clean(lines)]
            for side, lines in zip(self._sides, (sources, firsts), strict=True)
        )
        return ParallelText(src, tgt)


def _clean(lines: Sequence[str]) -> list[str]:
    """The lines as scripts clean them. Raises UserError for one text in place of a list."""
    tally = LineTally()
    return [clean(line, tally) for line in _listed(lines)]


def _listed(lines: Sequence[str]) -> list[str]:
    """The lines. Raises UserError for one text, whose letters would be taken for lines."""
    if isinstance(lines, str):
        raise UserError("expected a list of lines, a sentence each; found one text: put it in [ ]")
    return list(lines)


def origin_of(files: list[Path]) -> dict[str, Any]:
    """What an export from Python says of where it came from."""
    return {"made_by": "headcount, from Python", "inputs": {f.name: sha256(f) for f in files}}
