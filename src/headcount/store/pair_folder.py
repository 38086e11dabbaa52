"""The folder of a pair cut into subwords, which scripts/bpe.py writes."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headcount.base.errors import UserError
from headcount.base.files import sha256
from headcount.base.folders import SEGMENTERS, SIDES, VOCABULARIES
from headcount.data.batches import ParallelText
from headcount.data.bpe import Segmenter, load_segmenters, read_segmentation
from headcount.data.lines import clean_lines
from headcount.data.vocabulary import Vocabulary

Checksums = dict[str, dict[str, str]]  # SHA-256 by key of model.json and by side

SUBWORD_FILES = {"vocabularies": ("vocab", "vocabulary"), "codes": ("codes", "BPE codes")}
"""Endings of the files of both sides and their names in messages, by key of model.json."""


@dataclass(frozen=True)
class PairFolder:
    """A folder with a segmented pair."""

    path: Path

    def files(self, names: Iterable[str] = SEGMENTERS) -> list[Path]:
        """Return the files of a list in base/folders.py, by default of the segmenters."""
        return [self.path / name for name in names]

    def texts(self, split: str) -> tuple[Path, Path]:
        """Return the files of a split (train, dev), subwords with spaces between."""
        return self.path / f"{split}.src", self.path / f"{split}.tgt"

    def vocabulary(self, side: str) -> Vocabulary:
        """Return the vocabulary of one side, `src` or `tgt`."""
        return Vocabulary.load(self.path / VOCABULARIES[SIDES.index(side)])

    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """Return the vocabularies of source and target."""
        return self.vocabulary("src"), self.vocabulary("tgt")

    def segmenters(self) -> tuple[Segmenter, Segmenter]:
        """Return the segmenters of source and target, between text and ids."""
        return load_segmenters(self.path)

    def segmentation(self) -> dict[str, Any]:
        """Return the record of segmentation: languages, settings, merges learnt."""
        return read_segmentation(self.path)

    def read(self, split: str) -> ParallelText:
        """Return the sentence pairs of a split. Raises UserError for unequal numbers of lines."""
        paths = self.texts(split)
        src, tgt = (
            [vocabulary.ids(line.split(" ")) if line else [] for line in clean_lines(path)]
            for path, vocabulary in zip(paths, self.vocabularies(), strict=True)
        )
        if len(src) != len(tgt):
            raise UserError(
                f"{paths[0]} has {len(src)} lines, {paths[1]} has {len(tgt)}; make them again"
            )
        return ParallelText(src, tgt)

    def first_pairs(self, split: str, number: int | None) -> ParallelText:
        """Return the first `number` pairs whose source has a word. Raises UserError without any."""
        whole = self.read(split)
        filled = [place for place, ids in enumerate(whole.src) if ids][:number]
        if not filled:
            raise UserError(f"{self.texts(split)[0]}: expected sentences, found none with a word")
        return whole.part(filled)

    def subwords(self) -> Checksums:
        """Return the checksums of the files that define the ids, for a model's description."""
        return {
            key: {side: sha256(self.path / f"{side}.{end}") for side in SIDES}
            for key, (end, _) in SUBWORD_FILES.items()
        }
