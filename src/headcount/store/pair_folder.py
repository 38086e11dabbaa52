"""The folder of a pair cut into subwords, as scripts/bpe.py leaves it."""

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
from headcount.data.sentencepieces import read_marks
from headcount.data.vocabulary import Vocabulary

Checksums = dict[str, dict[str, str]]  # SHA-256 by key of model.json and by side

SUBWORD_FILES = {"vocabularies": ("vocab", "vocabulary"), "codes": ("codes", "BPE codes")}
"""Keys of model.json: how the files of both sides end, and what a person calls them."""


@dataclass(frozen=True)
class PairFolder:
    """Where a segmented pair lies."""

    path: Path

    def files(self, names: Iterable[str] = SEGMENTERS) -> list[Path]:
        """The files of a list in base/folders.py; without one, what cuts and numbers text."""
        return [self.path / name for name in names]

    def texts(self, split: str) -> tuple[Path, Path]:
        """Source and target side of a split (train, dev), subwords with spaces between."""
        src, tgt = (self.path / f"{split}.{side}" for side in SIDES)
        return src, tgt

    def vocabulary(self, side: str) -> Vocabulary:
        """The vocabulary of one side, `src` or `tgt`."""
        return Vocabulary.load(self.path / VOCABULARIES[SIDES.index(side)])

    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """The vocabularies of source and target."""
        return self.vocabulary("src"), self.vocabulary("tgt")

    def segmenters(self) -> tuple[Segmenter, Segmenter]:
        """What cuts text of source and target into ids, and back."""
        return load_segmenters(self.path)

    def prefix(self) -> list[int]:
        """Ids that every target begins with, such as the code of its language; mostly none."""
        return read_marks(self.segmentation(), 1).prefix(self.vocabulary("tgt"))

    def segmentation(self) -> dict[str, Any]:
        """How the text was cut: languages, settings, merges learnt."""
        return read_segmentation(self.path)

    def read(self, split: str) -> ParallelText:
        """The sentence pairs of a split. Raises UserError if the numbers of lines differ."""
        paths = self.texts(split)
        src, tgt = (
            [vocabulary.ids(line.split(" ")) if line else [] for line in clean_lines(path)]
            for path, vocabulary in zip(paths, self.vocabularies(), strict=True)
        )
        if len(src) != len(tgt):
            raise UserError(
                f"{paths[0]} has {len(src)} lines, {paths[1]} has {len(tgt)}; "
                "make them again from the text"
            )
        return ParallelText(src, tgt)

    def first_pairs(self, split: str, number: int | None) -> ParallelText:
        """The first pairs whose source has a word, `number` of them, None for all.

        Raises UserError if there is none, or the numbers of lines differ.
        """
        whole = self.read(split)
        kept = [place for place, ids in enumerate(whole.src) if ids][:number]
        if not kept:
            raise UserError(f"{self.texts(split)[0]}: expected sentences, found none with a word")
        return whole.part(kept)

    def subwords(self) -> Checksums:
        """What a model's description says of the files that give its ids their meaning."""
        return {
            key: {side: sha256(self.path / f"{side}.{end}") for side in SIDES}
            for key, (end, _) in SUBWORD_FILES.items()
        }
