"""Byte-pair encoding: merges learnt from text, words cut into pieces, pieces joined again."""

import contextlib
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

from headcount.base.errors import reading
from headcount.base.files import read_json, write_json, write_text
from headcount.base.folders import CODES, SEGMENTATION, SIDES, VOCABULARIES
from headcount.base.settings.data import BpeSettings, SpellingSettings
from headcount.data.lines import clean_lines, references, write_lines
from headcount.data.sentencepieces import (
    MARKS,
    TOKENIZER_UNIT,
    UNIT,
    make_pieces,
    read_marks,
)
from headcount.data.vocabulary import SPECIALS, UNK, Vocabulary
from headcount.data.words import (
    SEPARATOR,
    AnySegmenter,
    Marks,
    Normalise,
    Tokeniser,
    protect,
    read_normaliser,
    restore,
    spelling_facts,
)

UNKNOWN = "⁇"
"""Unknown piece in a translation. It is one word to sacreBLEU, while `<unk>` would be three."""

LONGEST_CUT = 100  # characters: the time of merging grows with the square of a word's length
_HEADER = "#version: 0.2"
_SPELT, _AS_READ = SpellingSettings(), SpellingSettings(normal_form="none")


class PieceCutter:
    """Cuts words into pieces by learnt merges, with a cache, or leaves them whole."""

    def __init__(self, codes: str, unit: str = "subwords"):
        """`codes` is the text of a code file, as `learn_codes` returns it."""
        header, merges = codes.partition("\n")[0], codes.count("\n") - 1
        if header != _HEADER:
            raise ValueError(f"expected {_HEADER} in the first line of codes, found {header[:50]}")
        # BPE would read a file without merges as a faulty line; 0 stops it from reading any.
        try:
            self._bpe = BPE(io.StringIO(codes), merges=merges, separator=SEPARATOR)
        except SystemExit as fault:  # the library leaves at a faulty line
            raise ValueError("expected a pair of pieces in every line of codes") from fault
        self._cut_word = cache(self._pieces) if unit == "subwords" else lambda w: [protect(w)]

    def cut(self, words: Iterable[str]) -> list[str]:
        """Return the pieces of all words, with `@@` where the next piece continues a word."""
        return [piece for word in words for piece in self._cut_word(word)]

    def _pieces(self, word: str) -> list[str]:
        pieces = []
        for part in _parts(word):
            pieces += self._bpe.segment_tokens([part])
            pieces[-1] += SEPARATOR
        pieces[-1] = pieces[-1].removesuffix(SEPARATOR)
        return pieces


def join_pieces(pieces: Iterable[str]) -> list[str]:
    """Return the words of pieces. A last piece that ends in `@@` ends its word."""
    words, word = [], ""
    for piece in pieces:
        word += piece.removesuffix(SEPARATOR)
        if not piece.endswith(SEPARATOR):
            words.append(restore(word))
            word = ""
    return [*words, restore(word)] if word else words


def learn_codes(words: Counter[str], merges: int) -> str:
    """Return the text of a code file with at most `merges` merges of pairs that occur twice."""
    parts: Counter[str] = Counter()
    for word, count in words.items():
        for part in _parts(word):
            parts[part] += count
    if merges == 0 or max(map(len, parts), default=0) < 2:
        return f"{_HEADER}\n"
    out = io.StringIO()
    with contextlib.redirect_stderr(io.StringIO()):  # the library writes its progress there
        entries = [f"{part} {count}" for part, count in sorted(parts.items())]
        learn_bpe(entries, out, merges, min_frequency=2, is_dict=True)
    return out.getvalue()


def _parts(word: str) -> list[str]:
    safe = protect(word)
    return [safe[start : start + LONGEST_CUT] for start in range(0, len(safe), LONGEST_CUT)]


class Segmenter(AnySegmenter):
    """One side of a pair, cut into words and these into subwords."""

    def __init__(
        self,
        tokeniser: Tokeniser,
        cutter: PieceCutter,
        words: Vocabulary,
        normalise: Normalise = str,
        marks: Marks | None = None,
    ):
        super().__init__(tokeniser.language, words, normalise, marks or Marks())
        self._tokeniser, self._cutter = tokeniser, cutter

    def text_pieces(self, line: str) -> list[str]:
        """Return the pieces of a cleaned line without its marks, known to the model or not."""
        return self._cutter.cut(self._tokeniser.split(self.normalise(line)))

    def begins(self, pieces: Sequence[str]) -> list[bool]:
        """Return for each piece True if it begins a word."""
        return [not before.endswith(SEPARATOR) for before in ["", *pieces[:-1]]][: len(pieces)]

    def word(self, pieces: Sequence[str]) -> str:
        """Return the word of these pieces."""
        return join_pieces(pieces)[0]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the detokenised line of ids without padding, start or end."""
        pieces = (p for p in self.vocabulary.pieces(ids) if p not in self.special)
        shown = (UNKNOWN if piece == SPECIALS[UNK] else piece for piece in pieces)
        return self._tokeniser.join(join_pieces(shown))


def segment_corpus(
    train: tuple[Path, Path],
    dev: tuple[Path, Path],
    languages: tuple[str, str],
    pretokenised: bool,
    settings: BpeSettings,
    folder: Path,
    spelt: SpellingSettings = _SPELT,
) -> dict[str, int]:
    """Learn BPE from the training text of a pair. Return the number of merges by side.

    Into `folder`: `{src,tgt}.codes`, `{src,tgt}.vocab`, `{train,dev}.{src,tgt}` (pieces between
    spaces, of the first reference) and, last, `segmentation.json`. `spelt`: the text's form.
    """
    tokenisers = [Tokeniser(name, pretokenised, settings.unsegmented_scripts) for name in languages]
    counts = [
        Counter(word for line in clean_lines(path) for word in tokeniser.split(line))
        for path, tokeniser in zip(train, tokenisers, strict=True)
    ]
    merges = settings.merges if settings.unit == "subwords" else 0
    if settings.joint:
        counts = [counts[0] + counts[1]] * 2
        codes = [learn_codes(counts[0], merges)] * 2
    else:
        codes = [learn_codes(count, merges) for count in counts]
    cutters = [PieceCutter(of_side, settings.unit) for of_side in codes]
    words = [known_pieces(*side, settings.largest) for side in zip(counts, cutters, strict=True)]
    sides = tuple(map(Segmenter, tokenisers, cutters, words))
    learnt = {name: codes[side].count("\n") - 1 for side, name in enumerate(SIDES)}
    about = {"src_lang": languages[0], "tgt_lang": languages[1], "pretokenised": pretokenised}
    about |= settings.model_dump() | {"merges_learnt": learnt} | spelling_facts(spelt)
    write_segmented(folder, {"train": train, "dev": dev}, sides, codes, about)
    return learnt


def known_pieces(words: Counter[str], cutter: PieceCutter, largest: int | None) -> Vocabulary:
    """Return the vocabulary of the `largest` most frequent pieces of words with their counts."""
    pieces: Counter[str] = Counter()
    for word, count in words.items():
        for piece in cutter.cut([word]):
            pieces[piece] += count
    return Vocabulary.of(pieces, largest)


def write_segmented(
    folder: Path,
    texts: Mapping[str, Sequence[Path]],
    sides: Sequence[Segmenter],
    codes: Sequence[str],
    about: Mapping[str, Any],
) -> None:
    """Write the files of a pair: codes, vocabularies, cut texts by split, `segmentation.json`."""
    for side, name in enumerate(SIDES):
        write_text(folder / CODES[side], codes[side])
        sides[side].vocabulary.save(folder / VOCABULARIES[side])
        for split, paths in texts.items():
            lines = (references(line)[0] for line in clean_lines(paths[side]))
            cut = (" ".join(sides[side].pieces(line)) for line in lines)
            write_lines(folder / f"{split}.{name}", cut)
    write_json(folder / SEGMENTATION, about)


def load_segmenters(folder: Path) -> tuple[AnySegmenter, AnySegmenter]:
    """Return both sides of a folder of `segment_corpus`. Raises UserError for another folder."""
    with reading(folder, "scripts/bpe.py"):
        about = read_segmentation(folder)
        codes = [(folder / name).read_bytes() for name in CODES]
        src = Vocabulary.load(folder / VOCABULARIES[0])
        tgt = src if about["joint"] else Vocabulary.load(folder / VOCABULARIES[1])
        return _segmenter(0, about, codes[0], src), _segmenter(1, about, codes[1], tgt)


def _segmenter(
    side: int, about: dict[str, Any], codes: bytes, vocabulary: Vocabulary
) -> AnySegmenter:
    language = about[("src_lang", "tgt_lang")[side]]
    marks = read_marks(about, side)
    if about["unit"] in (UNIT, TOKENIZER_UNIT):
        normalise = read_normaliser(about, _AS_READ)  # the model has a normal form of its own
        return make_pieces(about["unit"], language, codes, vocabulary, marks, normalise)
    tokeniser = Tokeniser(language, about["pretokenised"], about["unsegmented_scripts"])
    cutter = PieceCutter(codes.decode("utf-8"), about["unit"])
    return Segmenter(tokeniser, cutter, vocabulary, read_normaliser(about, _SPELT), marks)


def read_segmentation(folder: Path) -> dict[str, Any]:
    """Return the content of segmentation.json. Raises UserError if it lacks a key."""
    path = folder / SEGMENTATION
    keys = {"src_lang", "tgt_lang", "pretokenised", "joint", "unit"}
    with reading(path, "scripts/bpe.py or scripts/segment.py"):
        about = read_json(path)
        if about["unit"] in (UNIT, TOKENIZER_UNIT):
            keys.add(MARKS)
        if not keys <= set(about):
            raise ValueError(f"expected the keys {', '.join(sorted(keys))}")
    return about
