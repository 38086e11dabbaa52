"""Segmentation of a pair's text into the pieces of a pretrained model."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from headcount.base.errors import UserError
from headcount.base.files import write_bytes, write_json
from headcount.base.folders import CODES, SEGMENTATION, SIDES, VOCABULARIES
from headcount.base.settings.data import LetterSettings
from headcount.data.lines import clean_lines, references, write_lines
from headcount.data.sentencepieces import MARKS, RunningPieces
from headcount.data.words import spelling_facts
from headcount_hf.pretrained.families import Codes, Config
from headcount_hf.pretrained.languages import choose_codes, place_marks
from headcount_hf.pretrained.pieces import read_pieces
from headcount_hf.pretrained.weights import number_words

_AS_READ = LetterSettings()
LANGUAGE_CODES = "language_codes"
"""Key of segmentation.json with the model's codes of both languages."""
EXAMPLES = "examples"
"""Key of segmentation.json with pairs of uncut lines, which the import compares."""
_EXAMPLES = 8


def segment_pretrained(
    folder: Path,
    languages: tuple[str, str],
    train: tuple[Path, Path],
    dev: tuple[Path, Path],
    out: Path,
    codes: Codes = (None, None),
    spelt: LetterSettings = _AS_READ,
) -> None:
    """Cut the text of a pair into the pieces of a pretrained model, and write what BPE writes.

    `{src,tgt}.codes` are a SentencePiece model or a tokenizer.json. `codes`: see `choose_codes`.
    `spelt`: letters of the text. The first of several references of dev is cut. Raises UserError
    for a damaged folder, an unknown language, and a line longer than the model's positions.
    """
    config = Config.read(folder)
    longest = config.settings().position_table or None
    pieces = read_pieces(config)
    chosen = choose_codes(config, pieces, languages, codes)
    placement = place_marks(config, pieces, chosen)
    numbering = number_words(config, pieces.unknown, placement.start, placement.src_end)
    for side, name in enumerate(SIDES):
        cutter = pieces.cutter(side, languages[side], placement.marks[side])
        counts: Counter[str] = Counter()
        for split, paths in (("train", train), ("dev", dev)):
            lines = list(_cut(cutter, paths[side], longest))
            write_lines(out / f"{split}.{name}", map(" ".join, lines))
            if split == "train":
                counts.update(piece for line in lines for piece in line)
        pieces.vocabulary(side, numbering.rows[side], counts).save(out / VOCABULARIES[side])
        write_bytes(out / CODES[side], pieces.sides[side].model)
    marks = zip(SIDES, map(vars, placement.marks), strict=True)
    about = {"src_lang": languages[0], "tgt_lang": languages[1], "pretokenised": False}
    about |= {"unit": pieces.unit, "joint": numbering.joint, MARKS: dict(marks)}
    about |= {LANGUAGE_CODES: chosen, EXAMPLES: _examples(dev, pieces.words)}
    write_json(out / SEGMENTATION, about | spelling_facts(spelt))


def _examples(dev: Sequence[Path], words: Iterable[str]) -> list[list[str]]:
    """Return pairs of dev, pairs with an added word first, and one with every added word."""
    sides = ([references(line)[0] for line in clean_lines(path)] for path in dev)
    pairs = [list(pair) for pair in zip(*sides, strict=False) if all(pair)]
    pairs.sort(key=lambda pair: not any(word in line for word in words for line in pair))
    return [
        *pairs[:_EXAMPLES],
        *([line + " " + " ".join(words) for line in pair] for pair in pairs[:1] if words),
    ]


def _cut(cutter: RunningPieces, path: Path, longest: int | None) -> Iterator[list[str]]:
    """Yield the pieces of every line. Raises UserError for a line longer than the positions."""
    for number, line in enumerate(clean_lines(path), start=1):
        pieces = cutter.pieces(references(line)[0])
        if longest is not None and len(pieces) >= longest:
            raise UserError(
                f"{path}:{number}: expected at most {longest - 1} pieces, one less than the model "
                f"has positions, found {len(pieces)}; leave the line out of both sides"
            )
        yield pieces
