"""Segmentation of a pair's text into the pieces of a pretrained model, with marks of languages."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headcount.base.errors import UserError
from headcount.base.files import write_bytes, write_json
from headcount.base.folders import CODES, SEGMENTATION, SIDES, VOCABULARIES
from headcount.base.settings.data import LetterSettings
from headcount.data.lines import clean_lines, references, write_lines
from headcount.data.sentencepieces import MARKS, Marks, RunningPieces, make_pieces
from headcount.data.vocabulary import Vocabulary
from headcount.data.words import spelling_facts
from headcount_hf.pretrained.families import (
    CONFIG,
    TOKENIZER_CONFIG,
    Codes,
    Config,
    check_languages,
    stated,
)
from headcount_hf.pretrained.pieces import Pieces, read_pieces
from headcount_hf.pretrained.weights import number_words

GENERATION = "generation_config.json"


@dataclass(frozen=True)
class Placement:
    """Marks around the pieces of a sentence."""

    marks: tuple[Marks, Marks]  # of source and target
    start: int | None = None  # their id that the decoder begins with, if not the config's
    src_end: int | None = None  # their id that a source ends with, if not the end's


def choose_codes(
    config: Config, pieces: Pieces, languages: Sequence[str], given: Codes
) -> tuple[str | None, str | None]:
    """Return the codes of both languages, None for a side where the model needs none.

    `given`: codes that a person chose instead of the language's name. Raises UserError for an
    unknown or needless code, and for a folder of another direction.
    """
    chosen: list[str | None] = []
    needs = needs_codes(config, pieces, given)
    for name, needed, language, code in zip(SIDES, needs, languages, given, strict=True):
        if code is not None and not needed:
            raise UserError(f"--{name}-code: expected none for this model, found {code!r}")
        chosen.append(_find_code(pieces, f"--{name}-code", code or language) if needed else None)
    check_languages(pieces.folder, languages, chosen)
    ids = pieces.sides[1].ids
    known = {ids[piece]: code for code, piece in pieces.languages.items() if piece in ids}
    check_forced(pieces.folder, known, chosen[1])
    return chosen[0], chosen[1]


def check_forced(folder: Path, languages: Mapping[int, str], target: str | None) -> None:
    """Raise UserError if a folder starts translations with another language's code."""
    for key in ("forced_bos_token_id", "decoder_start_token_id"):
        number = stated(folder / GENERATION, key)
        number = stated(folder / CONFIG, key) if number is None else number
        forced = languages.get(number, target)
        if forced != target:
            raise UserError(
                f"{folder}: {key}: expected the id of {target}, found that of {forced}. If the "
                f"model knows {target} too, remove {key}"
            )


def place_marks(config: Config, pieces: Pieces, codes: Codes) -> Placement:
    """Return the marks for codes as `choose_codes` returns them.

    OPUS-MT: the target's code before the source. NLLB, M2M100 and mBART50: each side begins with
    its own code. mBART: the source ends with its end and its code, the decoder begins with the
    target's. BART: each side begins with `<s>`.
    """
    kind, special, words = config.model_type, pieces.special, pieces.words
    src, tgt = (() if code is None else (pieces.languages[code],) for code in codes)
    if kind == "mbart" and not _is_mbart50(config):
        ids = pieces.sides[0].ids
        end = next(name for name, number in ids.items() if number == config.eos_token_id)
        # Our source ends with one id: here their code, and the end before it is a usual piece.
        source = Marks((), (end,), special, words)
        marks = source, Marks((), (), special, words)
        return Placement(marks, start=ids[tgt[0]], src_end=ids[src[0]])
    if kind == "marian":
        src, tgt = tgt, ()
    if kind == "bart":
        src = tgt = ("<s>",)
    return Placement((Marks(src, (), special, words), Marks(tgt, (), special, words)))


def _is_mbart50(config: Config) -> bool:
    """Return True if a language's code stands first, as in mBART50, not last, as in mBART."""
    paths = (config.folder / TOKENIZER_CONFIG, config.path)
    name = next(filter(None, (stated(path, "tokenizer_class") for path in paths)), "")
    begins_with_end = config.decoder_start_token_id == config.eos_token_id
    return "MBart50" in name if "MBart" in name else begins_with_end


def needs_codes(config: Config, pieces: Pieces, given: Codes) -> tuple[bool, bool]:
    """Return for source and target whether the model needs the code of the language."""
    kind, known = config.model_type, pieces.languages
    if kind not in ("m2m_100", "mbart"):
        # A single code may be left over in a Marian of one language.
        return False, kind == "marian" and len(known) > (given[1] is None)
    if not known:
        raise UserError(f"{pieces.folder}: expected languages among the special tokens, found none")
    return True, True


def _find_code(pieces: Pieces, flag: str, code: str) -> str:
    """Return a code, given by its name or by the name of its piece."""
    known = pieces.languages
    for name, piece in known.items():
        if code in (name, piece):
            return name
    nearest = sorted(known, key=lambda name: (name[:2].lower() != code[:2].lower(), name))
    raise UserError(
        f"{flag}: expected one of the {len(known)} languages of {pieces.folder}, found {code!r}; "
        f"the nearest are {', '.join(nearest[:6])}"
    )


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
        model, marks, counts = pieces.sides[side].model, placement.marks[side], Counter()
        cutter = make_pieces(pieces.unit, languages[side], model, Vocabulary([]), marks)
        for split, paths in (("train", train), ("dev", dev)):
            lines = list(_cut(cutter, paths[side], longest))
            write_lines(out / f"{split}.{name}", map(" ".join, lines))
            if split == "train":
                counts.update(piece for line in lines for piece in line)
        pieces.vocabulary(side, numbering.rows[side], counts).save(out / VOCABULARIES[side])
        write_bytes(out / CODES[side], model)
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
