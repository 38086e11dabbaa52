"""How a model is told which languages it reads and writes, and where a sentence has its marks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headcount.base.errors import UserError
from headcount.base.folders import SIDES
from headcount.data.sentencepieces import Marks
from headcount_hf.pretrained.families import (
    CONFIG,
    TOKENIZER_CONFIG,
    Codes,
    Config,
    check_languages,
    stated,
)
from headcount_hf.pretrained.pieces import Pieces

GENERATION = "generation_config.json"
_NEAREST = 6  # names in a message


@dataclass(frozen=True)
class Placement:
    """Marks around the pieces of a sentence."""

    marks: tuple[Marks, Marks]  # of source and target
    start: int | None = None  # their id that the decoder begins with, if not the config's
    src_end: int | None = None  # their id that a source ends with, if not the end's


def choose_codes(
    config: Config, pieces: Pieces, languages: Sequence[str], given: Codes
) -> tuple[str | None, str | None]:
    """Return the codes of both languages, as far as the model is told them.

    `given`: those that were asked for; without one it is the language's own name. Raises UserError
    with the nearest names for one that the model does not have, for one that it is not told, and
    for languages of another direction than the folder's.
    """
    is_told = told_sides(config, pieces, given)
    chosen: list[str | None] = []
    for name, needed, language, code in zip(SIDES, is_told, languages, given, strict=True):
        if needed:
            chosen.append(_find(pieces, f"--{name}-code", code or language))
        elif code is not None:
            raise UserError(
                f"--{name}-code: expected none, as this model is not told that language, found "
                f"{code!r}; leave it out"
            )
        else:
            chosen.append(None)
    check_languages(pieces.folder, languages, chosen)
    ids = pieces.sides[1].ids
    known = {ids[piece]: code for code, piece in pieces.languages.items() if piece in ids}
    check_forced(pieces.folder, known, chosen[1])
    return chosen[0], chosen[1]


def check_forced(folder: Path, languages: Mapping[int, str], target: str | None) -> None:
    """Raise UserError where a folder lets translations begin with another language's code.

    `languages`: names by their ids.
    """
    for key in ("forced_bos_token_id", "decoder_start_token_id"):
        number = stated(folder / GENERATION, key)
        number = stated(folder / CONFIG, key) if number is None else number
        forced = languages.get(number, target)
        if forced != target:
            raise UserError(
                f"{folder}: {key}: expected the id of {target}, found that of {forced}; this "
                f"model was made to translate into that. If it knows {target} too, remove {key}"
            )


def place_marks(config: Config, pieces: Pieces, codes: Codes) -> Placement:
    """Return what stands where, given codes as `choose_codes` returns them.

    OPUS-MT: the target's code before the source. NLLB, M2M100 and mBART50: each side begins with
    its own code. mBART: the source ends with its end and its code, the decoder begins with the
    target's. BART: each side begins with `<s>`.
    """
    kind, special, words = config.model_type, pieces.special, pieces.words
    src, tgt = (() if code is None else (pieces.languages[code],) for code in codes)
    if kind == "mbart" and not _is_mbart50(config):
        ids = pieces.sides[0].ids
        end = next(name for name, number in ids.items() if number == config.eos_token_id)
        # A source of ours ends with one id and no more: it is their code, and the end before it a
        # piece like others.
        source = Marks((), (end,), special, words)
        marks = source, Marks((), (), special, words)
        return Placement(marks, start=ids[tgt[0]], src_end=ids[src[0]])
    if kind == "marian":
        src, tgt = tgt, ()
    if kind == "bart":
        src = tgt = ("<s>",)
    return Placement((Marks(src, (), special, words), Marks(tgt, (), special, words)))


def _is_mbart50(config: Config) -> bool:
    """Return whether a language's code stands first, as in mBART50, not last, as in mBART."""
    paths = (config.folder / TOKENIZER_CONFIG, config.path)
    name = next(filter(None, (stated(path, "tokenizer_class") for path in paths)), "")
    if "MBart" in name:
        return "MBart50" in name
    return config.decoder_start_token_id == config.eos_token_id


def told_sides(config: Config, pieces: Pieces, given: Codes) -> tuple[bool, bool]:
    """Return whether the model is told the language of source and target."""
    kind, known = config.model_type, pieces.languages
    if kind == "marian":  # one code is no choice: a model of one language may have it left over
        return False, len(known) > 1 or (len(known) == 1 and given[1] is not None)
    if kind not in ("m2m_100", "mbart"):
        return False, False
    if not known:
        raise UserError(
            f"{pieces.folder}: expected languages among the special tokens of the tokeniser, found "
            "none; a tokenizer.json has them"
        )
    return True, True


def _find(pieces: Pieces, flag: str, code: str) -> str:
    """Return the code by its own name or its piece's."""
    known = pieces.languages
    by_piece = {piece: name for name, piece in known.items()}
    found = code if code in known else by_piece.get(code)
    if found is None:
        begin_alike = sorted(known, key=lambda name: (name[:2].lower() != code[:2].lower(), name))
        raise UserError(
            f"{flag}: expected one of the {len(known)} languages of {pieces.folder}, found "
            f"{code!r}; the nearest are {', '.join(begin_alike[:_NEAREST])}"
        )
    return found
