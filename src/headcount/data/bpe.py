"""Byte-pair encoding: merges learnt from text, words cut into pieces, pieces joined again."""

import contextlib
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

from headcount.base.errors import UserError
from headcount.base.files import read_json, write_json, write_text
from headcount.base.folders import CODES, SEGMENTATION, SIDES, VOCABULARIES
from headcount.base.settings.data import BpeSettings, SpellingSettings
from headcount.data.lines import clean_lines, references, write_lines
from headcount.data.sentencepieces import (
    MARKS,
    TOKENIZER_UNIT,
    UNIT,
    RunningPieces,
    make_pieces,
    read_marks,
)
from headcount.data.spelling import Spell, read_spelling, spelling_facts
from headcount.data.vocabulary import UNK, Vocabulary
from headcount.data.words import SEPARATOR, Tokeniser, protect, restore

UNKNOWN = "⁇"
"""How an unknown piece shows in a translation. One word to sacreBLEU, of `<unk>` it makes three."""
(_UNK,) = Vocabulary([]).pieces([UNK])

LONGEST_CUT = 100
"""Characters; a longer word is cut into parts of this length before merging, because the time
that merging takes grows with the square of the length."""

_SPELT, _AS_READ = SpellingSettings(), SpellingSettings(normal_form="none")
_MIN_COUNT = 2  # a pair of symbols seen once is not worth a merge


class PieceCutter:
    """Cuts words into pieces by learnt merges. Every cut is remembered."""

    def __init__(self, codes: str):
        """`codes` is the text of a code file, as `learn_codes` returns it."""
        merges = codes.count("\n") - 1
        # A file without merges would be read as a faulty line; 0 tells BPE to read none.
        self._bpe = BPE(io.StringIO(codes), merges=merges, separator=SEPARATOR)
        self._cut_word = cache(self._pieces)

    def cut(self, words: Iterable[str]) -> list[str]:
        """Pieces of all words in order; a piece that the next one continues ends in `@@`."""
        return [piece for word in words for piece in self._cut_word(word)]

    def _pieces(self, word: str) -> list[str]:
        pieces = []
        for part in _parts(word):
            pieces += self._bpe.segment_tokens([part])
            pieces[-1] += SEPARATOR
        pieces[-1] = pieces[-1].removesuffix(SEPARATOR)
        return pieces


class WordCutter:
    """Leaves every word whole, in the form that pieces have."""

    def cut(self, words: Iterable[str]) -> list[str]:
        """The words in order, each a piece."""
        return list(map(protect, words))


def make_cutter(unit: str, codes: str) -> PieceCutter | WordCutter:
    """What cuts words into units, as in `BpeSettings`; whole words need no codes."""
    return WordCutter() if unit == "words" else PieceCutter(codes)


def join_pieces(pieces: Iterable[str]) -> list[str]:
    """Words of a sequence of pieces; a last piece that waits for more ends its word."""
    words, word = [], ""
    for piece in pieces:
        word += piece.removesuffix(SEPARATOR)
        if not piece.endswith(SEPARATOR):
            words.append(restore(word))
            word = ""
    return [*words, restore(word)] if word else words


def learn_codes(words: Counter[str], merges: int) -> str:
    """Text of a code file with at most `merges` merges, the same for the same counts.

    Fewer are learnt when no pair of symbols is left that occurs twice.
    """
    parts: Counter[str] = Counter()
    for word, count in words.items():
        for part in _parts(word):
            parts[part] += count
    if merges == 0 or max(map(len, parts), default=0) < 2:
        return "#version: 0.2\n"
    out = io.StringIO()
    # The library reports its progress to the terminal; a log has no use for that.
    with contextlib.redirect_stderr(io.StringIO()):
        entries = [f"{part} {count}" for part, count in sorted(parts.items())]
        learn_bpe(entries, out, merges, min_frequency=_MIN_COUNT, is_dict=True)
    return out.getvalue()


class Segmenter:
    """One side of a pair: from a line of text to subword ids and back."""

    prefix: Sequence[int] = ()  # ids that every sentence begins with: none

    def __init__(
        self,
        tokeniser: Tokeniser,
        cutter: PieceCutter | WordCutter,
        words: Vocabulary,
        spell: Spell = str,
    ):
        """`words` has the pieces the model knows; `spell` writes lines as its training text was."""
        self.language = tokeniser.language
        self.spell = spell
        self.vocabulary = words
        self._tokeniser = tokeniser
        self._cutter = cutter

    def pieces(self, line: str) -> list[str]:
        """Pieces of a cleaned line, those outside the vocabulary included."""
        return self._cutter.cut(self._tokeniser.split(self.spell(line)))

    def begins(self, pieces: Sequence[str]) -> list[bool]:
        """Whether each piece begins a word."""
        return [not before.endswith(SEPARATOR) for before in ["", *pieces[:-1]]][: len(pieces)]

    def word_count(self, pieces: Sequence[str]) -> int:
        """How many words pieces have."""
        return sum(self.begins(pieces))

    def word(self, pieces: Sequence[str]) -> str:
        """The word of these pieces."""
        return join_pieces(pieces)[0]

    def encode(self, line: str) -> list[int]:
        """Ids of a cleaned line, without start or end; unknown pieces become UNK."""
        return self.vocabulary.ids(self.pieces(line))

    def cut_off(self, ids: list[int], longest: int) -> list[int]:
        """Ids of a line, no more than `longest`."""
        return ids[:longest]

    def decode(self, ids: Iterable[int]) -> str:
        """Detokenised line of ids without padding, start or end; UNK shows as `UNKNOWN`."""
        pieces = self.vocabulary.pieces(ids)
        shown = (UNKNOWN if piece == _UNK else piece for piece in pieces)
        return self._tokeniser.join(join_pieces(shown))


AnySegmenter = Segmenter | RunningPieces


def segment_corpus(
    train: tuple[Path, Path],
    dev: tuple[Path, Path],
    languages: tuple[str, str],
    pretokenised: bool,
    settings: BpeSettings,
    folder: Path,
    spelt: SpellingSettings = _SPELT,
) -> dict[str, int]:
    """Learn BPE from the training text of a pair and write all that later steps need.

    Into `folder`: `{src,tgt}.codes`, `{src,tgt}.vocab`, `{train,dev}.{src,tgt}` (pieces,
    separated by spaces, line i of the text in line i) and, last, `segmentation.json`. If joint,
    one code file and one vocabulary come from both sides and are written for each. Of several
    references of dev the first is cut. `spelt`: how the text is written already. Returns the number
    of merges learnt for each side.
    """
    tokenisers = [Tokeniser(each, pretokenised, settings.unsegmented_scripts) for each in languages]
    counts = [
        Counter(word for line in clean_lines(path) for word in tokeniser.split(line))
        for path, tokeniser in zip(train, tokenisers, strict=True)
    ]
    merges = settings.merges if settings.unit == "subwords" else 0
    if settings.joint:
        both = counts[0] + counts[1]
        codes = [learn_codes(both, merges)] * 2
        counts = [both, both]
    else:
        codes = [learn_codes(count, merges) for count in counts]
    for side, name in enumerate(SIDES):
        cutter = make_cutter(settings.unit, codes[side])
        write_text(folder / CODES[side], codes[side])
        pieces: Counter[str] = Counter()
        for word, count in counts[side].items():
            for piece in cutter.cut([word]):
                pieces[piece] += count
        Vocabulary.of(pieces, settings.largest).save(folder / VOCABULARIES[side])
        for split, paths in (("train", train), ("dev", dev)):
            lines = (references(line)[0] for line in clean_lines(paths[side]))
            words = map(tokenisers[side].split, lines)
            write_lines(folder / f"{split}.{name}", (" ".join(cutter.cut(line)) for line in words))
    learnt = {name: codes[side].count("\n") - 1 for side, name in enumerate(SIDES)}
    about = {"src_lang": languages[0], "tgt_lang": languages[1], "pretokenised": pretokenised}
    about |= settings.model_dump() | {"merges_learnt": learnt} | spelling_facts(spelt)
    write_json(folder / SEGMENTATION, about)
    return learnt


def load_segmenters(folder: Path) -> tuple[AnySegmenter, AnySegmenter]:
    """Source and target side that `segment_corpus` left in a folder, or a pretrained model has.

    Joint ones share one vocabulary. Raises UserError if the folder is not such a folder.
    """
    try:
        about = read_segmentation(folder)
        codes = [(folder / name).read_bytes() for name in CODES]
        src_words, tgt_words = (folder / name for name in VOCABULARIES)
        src = Vocabulary.load(src_words)
        tgt = src if about["joint"] else Vocabulary.load(tgt_words)
        return (
            _segmenter(0, about, codes[0], src),
            _segmenter(1, about, codes[1], tgt),
        )
    except (FileNotFoundError, ValueError, KeyError) as fault:
        raise UserError(
            f"{folder}: expected the files that scripts/bpe.py writes, found a fault: {fault}; "
            "run it again"
        ) from None


def _segmenter(
    side: int, about: dict[str, Any], codes: bytes, vocabulary: Vocabulary
) -> AnySegmenter:
    language = about[("src_lang", "tgt_lang")[side]]
    if about["unit"] in (UNIT, TOKENIZER_UNIT):
        spell = read_spelling(about, _AS_READ)
        marks = read_marks(about, side)
        return make_pieces(about["unit"], language, codes, vocabulary, marks, spell)
    tokeniser = Tokeniser(language, about["pretokenised"], about["unsegmented_scripts"])
    cutter = make_cutter(about["unit"], codes.decode("utf-8"))
    spell = read_spelling(about, _SPELT)
    return Segmenter(tokeniser, cutter, vocabulary, spell)


def read_segmentation(folder: Path) -> dict[str, Any]:
    """How `segment_corpus` cut the text of a pair. Raises UserError if nothing whole says so."""
    path = folder / SEGMENTATION
    keys = {"src_lang", "tgt_lang", "pretokenised", "joint", "unit"}
    try:
        about = read_json(path)
    except (FileNotFoundError, ValueError):
        about = None
    if isinstance(about, dict) and about.get("unit") in (UNIT, TOKENIZER_UNIT):
        keys.add(MARKS)
    if not isinstance(about, dict) or not keys <= set(about):
        raise UserError(
            f"{path}: expected what scripts/bpe.py writes, an object with "
            f"{', '.join(sorted(keys))}, found no such thing; run it again, or "
            "scripts/segment.py for a pretrained model"
        )
    return about


def _parts(word: str) -> list[str]:
    safe = protect(word)
    return [safe[start : start + LONGEST_CUT] for start in range(0, len(safe), LONGEST_CUT)]
