"""Segmentation of a pair's text into the pieces of a pretrained model, with marks of languages."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from os.path import commonprefix
from pathlib import Path

from headcount.base.errors import UserError
from headcount.base.files import write_bytes, write_json
from headcount.base.folders import CODES, SEGMENTATION, SIDES, VOCABULARIES
from headcount.base.settings.data import LetterSettings
from headcount.data.lines import clean_lines, references, write_lines
from headcount.data.sentencepieces import MARKS, Marks, RunningPieces, make_pieces
from headcount.data.vocabulary import BOS, EOS, Vocabulary
from headcount.data.words import restore, spelling_facts
from headcount_hf.pretrained.families import (
    CONFIG,
    TOKENIZER_CONFIG,
    Codes,
    Config,
    check_languages,
    stated,
)
from headcount_hf.pretrained.library import open_tokeniser
from headcount_hf.pretrained.pieces import Pieces, named_languages, read_pieces
from headcount_hf.pretrained.weights import Numbering, number_words

GENERATION = "generation_config.json"


def choose_codes(
    config: Config, pieces: Pieces, languages: Sequence[str], given: Codes
) -> tuple[str | None, str | None]:
    """Return the codes of both languages, `given` or by name, None where the model needs none."""
    kind, known = config.model_type, pieces.languages
    several = kind in ("m2m_100", "mbart")
    if several and not known:
        raise UserError(f"{config.folder}: expected languages among the special tokens, found none")
    # A single code may be left over in a Marian of one language.
    needs = several, several or kind == "marian" and len(known) > (given[1] is None)
    chosen: list[str | None] = []
    for name, needed, language, code in zip(SIDES, needs, languages, given, strict=True):
        flag = f"--{name}-code"
        if code is not None and not needed:
            raise UserError(f"{flag}: expected none for this model, found {code!r}")
        chosen.append(_find_code(config, known, flag, code or language) if needed else None)
    check_languages(config.folder, languages, chosen)
    ids = pieces.sides[1].ids
    starts = {ids[piece]: code for code, piece in known.items() if piece in ids}
    check_forced(config.folder, starts, chosen[1])
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


def place_marks(
    config: Config, pieces: Pieces, codes: Codes
) -> tuple[tuple[Marks, Marks], Numbering]:
    """Return the marks of both sides and our ids, for codes as `choose_codes` returns them.

    OPUS-MT: the target's code before the source. NLLB, M2M100 and mBART50: each side begins with
    its own code. mBART: the source ends with its end and its code, the decoder begins with the
    target's. BART: each side begins with `<s>`.
    """
    kind, special, words = config.model_type, pieces.special, pieces.words
    src, tgt = (() if code is None else (pieces.languages[code],) for code in codes)
    end, ends = (), ()
    if kind == "mbart" and not _is_mbart50(config):
        ids = pieces.sides[0].ids
        end = (next(name for name, number in ids.items() if number == config.eos_token_id),)
        # Our source ends with one id: here their code, and the end before it is a usual piece.
        ends, src, tgt = (ids[tgt[0]], ids[src[0]]), (), ()
    elif kind == "marian":
        src, tgt = tgt, ()
    elif kind == "bart":
        src = tgt = ("<s>",)
    marks = Marks(src, end, special, words), Marks(tgt, (), special, words)
    return marks, number_words(config, pieces.unknown, *ends)


def _is_mbart50(config: Config) -> bool:
    """Return True if a language's code stands first, as in mBART50, not last, as in mBART."""
    paths = (config.folder / TOKENIZER_CONFIG, config.path)
    name = next(filter(None, (stated(path, "tokenizer_class") for path in paths)), "")
    begins_with_end = config.decoder_start_token_id == config.eos_token_id
    return "MBart50" in name if "MBart" in name else begins_with_end


def _find_code(config: Config, known: Mapping[str, str], flag: str, code: str) -> str:
    """Return a code, given by its name or by the name of its piece."""
    for name, piece in known.items():
        if code in (name, piece):
            return name
    nearest = sorted(known, key=lambda name: (name[:2].lower() != code[:2].lower(), name))
    raise UserError(
        f"{flag}: expected one of the {len(known)} languages of {config.folder}, found {code!r}; "
        f"the nearest are {', '.join(nearest[:6])}"
    )


LANGUAGE_CODES = "language_codes"
"""Key of segmentation.json with the model's codes of both languages."""
COMPARED = "compared"
"""Key of segmentation.json with the number of lines that the library's tokeniser cuts alike."""
_COMPARED = 8


def segment_pretrained(
    folder: Path,
    languages: tuple[str, str],
    train: tuple[Path, Path],
    dev: tuple[Path, Path],
    out: Path,
    codes: Codes = (None, None),
    spelt: LetterSettings | None = None,
) -> None:
    """Cut the text of a pair into the pieces of a pretrained model, and write what BPE writes.

    `{src,tgt}.codes` are a SentencePiece model or a tokenizer.json. `codes`: see `choose_codes`.
    `spelt`: letters of the text. The first of several references of dev is cut.
    """
    config = Config.read(folder)
    longest = config.settings().position_table or None
    pieces = read_pieces(config)
    chosen = choose_codes(config, pieces, languages, codes)
    both, numbering = place_marks(config, pieces, chosen)
    cutters = []
    for side, name in enumerate(SIDES):
        model, marks, counts = pieces.sides[side].model, both[side], Counter()
        cutter = make_pieces(pieces.unit, languages[side], model, Vocabulary([]), marks)
        cutters.append(cutter)
        for split, paths in (("train", train), ("dev", dev)):
            lines = list(_cut(cutter, paths[side], longest))
            write_lines(out / f"{split}.{name}", map(" ".join, lines))
            if split == "train":
                counts.update(piece for line in lines for piece in line)
        pieces.vocabulary(side, numbering.rows[side], counts).save(out / VOCABULARIES[side])
        write_bytes(out / CODES[side], model)
    marks = zip(SIDES, map(vars, both), strict=True)
    about = {"src_lang": languages[0], "tgt_lang": languages[1], "pretokenised": False}
    about |= {"unit": pieces.unit, "joint": numbering.joint, MARKS: dict(marks)}
    about |= {LANGUAGE_CODES: chosen}
    about[COMPARED] = _compare_cuts(config, pieces, chosen, cutters, dev)
    write_json(out / SEGMENTATION, about | spelling_facts(spelt or LetterSettings()))


def _compare_cuts(
    config: Config,
    pieces: Pieces,
    codes: Codes,
    cutters: Sequence[RunningPieces],
    dev: Sequence[Path],
) -> str:
    """Return the number of compared lines, in words, without lines that name a special piece."""
    tokeniser = open_tokeniser(config.folder, **named_languages(codes))
    marks, (rows, _) = place_marks(config, pieces, codes)
    ends = [rows[0][EOS]], [rows[1][EOS]]
    if ends[0] != ends[1]:  # mBART's codes are last
        ends[1].append(rows[1][BOS])
    before = marks[0].before if config.model_type == "marian" else ()
    hidden = {tokeniser.eos_token, tokeniser.unk_token, tokeniser.pad_token, *pieces.special}
    compared = 0
    for side, name in enumerate(("text", "text_target")):
        lines = [references(line)[0] for line in clean_lines(dev[side])]
        for line in filter(None, [*lines[:_COMPARED], " ".join([*lines[:1], *pieces.words])]):
            if any(special in line for special in hidden - pieces.words.keys()):
                continue
            cut, numbers = map(restore, cutters[side].pieces(line)), pieces.sides[side].ids
            ours = [*(numbers.get(piece, pieces.unknown) for piece in cut), *ends[side]]
            given = line if side else " ".join([*before, line])
            expected = tokeniser(**{name: given})["input_ids"]
            if ours != expected:
                at = len(commonprefix([ours, expected]))
                parts = expected[at : at + 1], ours[at : at + 1]
                token, other = map(tokeniser.convert_ids_to_tokens, parts)
                raise UserError(
                    f"{config.folder}: {SIDES[side]} line {line!r}: expected {token} as token "
                    f"{at + 1}, as {type(tokeniser).__name__} reads it, found {other}; leave the "
                    "line out if its characters are odd, else this model cannot be imported"
                )
            compared += 1
    return f"{compared} lines, by {type(tokeniser).__name__}"


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
