"""One segmentation for several pairs, and the mixture of their texts that one model learns from."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

import numpy as np

from headcount.base.folders import SIDES
from headcount.base.random_streams import Stream
from headcount.base.settings.data import BpeSettings, SpellingSettings
from headcount.base.settings.section import Pair
from headcount.data.bpe import PieceCutter, Segmenter, known_pieces, learn_codes, write_segmented
from headcount.data.lines import clean_lines, write_lines
from headcount.data.sentencepieces import MARKS
from headcount.data.vocabulary import Vocabulary
from headcount.data.words import LANGUAGE, Marks, Tokeniser, spelling_facts

SPLITS = ("train", "dev")
SEVERAL = Pair("", "mul", "mul")
"""Pair of a text in several languages, by their code in ISO 639-2."""
Repeats = Sequence[np.ndarray]  # by text, how often each of its lines stands in the mixture


class PairText(NamedTuple):
    """A pair, the folder of its cleaned text, and whether that is tokenised already."""

    pair: Pair
    folder: Path
    pretokenised: bool

    @property
    def mark(self) -> str:
        """Piece before every source sentence, which names the target language."""
        return f"{LANGUAGE}{self.pair.tgt}>"

    def files(self) -> dict[str, list[Path]]:
        """Return the files of source and target, by split."""
        return {split: [self.folder / f"{split}.{side}" for side in SIDES] for split in SPLITS}


def line_repeats(sizes: Sequence[int], temperature: float) -> Repeats:
    """Return how often every line of texts with so many lines stands in their mixture.

    The share of n lines is proportional to n^(1/temperature), and the largest text stands there
    once. Others may be repeated. The lines that are repeated once more are drawn by a fixed seed.
    """
    repeats, largest = [], max(sizes)
    for number, size in enumerate(sizes):
        wanted = round(largest * (size / largest) ** (1 / temperature))
        whole, more = divmod(wanted, max(size, 1))
        times = np.full(size, whole)
        times[Stream.PAIRS.generator(1, number).permutation(size)[:more]] += 1
        repeats.append(times)
    return repeats


class SharedBpe:
    """One code file and one vocabulary for several pairs, with marks of their target languages."""

    def __init__(self, pairs: Sequence[PairText], repeats: Repeats, settings: BpeSettings):
        """Learn from the mixture of all training texts."""
        self._settings, words, marks = settings, Counter(), Counter()
        for pair, times in zip(pairs, repeats, strict=True):
            marks[pair.mark] += int(times.sum())
            for path, tokeniser in zip(pair.files()["train"], self._tokenisers(pair), strict=True):
                for line, count in zip(clean_lines(path), times.tolist(), strict=True):
                    for word in tokeniser.split(line):
                        words[word] += count
        self._codes = learn_codes(words, settings.merges if settings.unit == "subwords" else 0)
        self._cutter = PieceCutter(self._codes, settings.unit)
        known = known_pieces(words, self._cutter, settings.largest)
        self._words = Vocabulary([*sorted(marks.items()), *known.counts])
        self._marks = sorted(marks)
        self.merges = self._codes.count("\n") - 1

    def write(self, folder: Path, text: PairText, spelt: SpellingSettings) -> None:
        """Write what `segment_corpus` writes for a pair, and the mark before its sources.

        A text without a folder is not cut.
        """
        before = [text.mark] if text.pair != SEVERAL else []
        marks = Marks(before, special=self._marks), Marks(special=self._marks)
        sides = [
            Segmenter(tokeniser, self._cutter, self._words, marks=of_side)
            for tokeniser, of_side in zip(self._tokenisers(text), marks, strict=True)
        ]
        about = {"src_lang": text.pair.src, "tgt_lang": text.pair.tgt}
        about |= {"pretokenised": text.pretokenised, **self._settings.model_dump()}
        about |= {"merges_learnt": dict.fromkeys(SIDES, self.merges)} | spelling_facts(spelt)
        about[MARKS] = dict(zip(SIDES, map(asdict, marks), strict=True))
        files = text.files() if before else {}
        write_segmented(folder, files, sides, [self._codes] * 2, about)

    def _tokenisers(self, text: PairText) -> list[Tokeniser]:
        scripts = self._settings.unsegmented_scripts
        return [Tokeniser(name, text.pretokenised, scripts) for name in text.pair[1:]]


def segment_pairs(
    texts: Sequence[PairText],
    folders: Sequence[Path],
    shared: Path,
    settings: BpeSettings,
    spelt: SpellingSettings,
    temperature: float,
) -> SharedBpe:
    """Cut the texts of several pairs by one segmentation, learnt from their mixture.

    Every pair's folder gets what `segment_corpus` writes, with the same codes and vocabulary. In
    `shared` train is the mixture, and dev has the sentences of all pairs.
    """
    sizes = [sum(1 for _ in clean_lines(text.files()["train"][0])) for text in texts]
    repeats = line_repeats(sizes, temperature)
    bpe = SharedBpe(texts, repeats, settings)
    for text, folder in zip(texts, folders, strict=True):
        bpe.write(folder, text, spelt)
    bpe.write(shared, PairText(SEVERAL, shared, False), spelt)
    whole = [np.ones(sum(1 for _ in clean_lines(text.files()["dev"][0])), int) for text in texts]
    for split, times in zip(SPLITS, (repeats, whole), strict=True):
        for side in SIDES:
            paths = [folder / f"{split}.{side}" for folder in folders]
            write_lines(shared / f"{split}.{side}", _mixed(paths, times))
    return bpe


def _mixed(paths: Sequence[Path], repeats: Repeats) -> Iterator[str]:
    """Yield the lines of cut texts, each as often as `repeats` has it."""
    for path, of_text in zip(paths, repeats, strict=True):
        for line, count in zip(clean_lines(path), of_text.tolist(), strict=True):
            yield from repeat(line, count)
