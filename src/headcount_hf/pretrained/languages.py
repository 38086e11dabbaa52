"""How a model is told which languages it reads and writes, and where a sentence has its marks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.base.folders import SIDES
from headcount.base.settings.names import contradict
from headcount.data.sentencepieces import Marks
from headcount_hf.pretrained.families import Config, is_mbart50
from headcount_hf.pretrained.pieces import Pieces, no_codes
from headcount_hf.pretrained.tokenizer_files import told

Codes = Sequence[str | None]
"""Of source and target: what the model calls their languages; None where it is not told."""

_NEAREST = 6  # names in a message


@dataclass(frozen=True)
class Placement:
    """What stands around the pieces of a sentence."""

    marks: tuple[Marks, Marks]  # of source and target
    start: int | None = None  # their id that the decoder begins with, if not the config's
    src_end: int | None = None  # their id that a source ends with, if not the end's


def choose_codes(
    config: Config, pieces: Pieces, languages: Sequence[str], given: Codes
) -> tuple[str | None, str | None]:
    """The codes of both languages, as far as the model is told them.

    `given`: those that were asked for; without one it is the language's own name. Raises UserError
    with the nearest names for one that the model does not have, and for one that it is not told.
    """
    is_told = _told_sides(config, pieces, given)
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
    return chosen[0], chosen[1]


def check_languages(folder: Path, languages: Sequence[str], codes: Codes = (None, None)) -> None:
    """Raise UserError where a code, or the folder of a Marian, names another language than a pair.

    The tokenizers of other families state no pair: their src_lang is a default.
    """
    sides = zip(SIDES, ("source_lang", "target_lang"), languages, codes, strict=True)
    for side, key, language, code in sides:
        stated = code or told(folder, key)
        if stated and contradict(str(stated), language):
            where = f"--{side}-code" if code else f"{folder}: {key} of tokenizer_config.json"
            raise UserError(
                f"{where}: expected {language}, a language of the pair in its direction, found "
                f"{stated!r}; name a model and a pair of the same direction"
            )


def check_forced(config: Config, pieces: Pieces, target: str | None) -> None:
    """Raise UserError where a folder lets translations begin with another language's code."""
    path = config.path.parent / "generation_config.json"
    search = read_json(path) if path.exists() else {}
    codes = {pieces.sides[1].ids[piece]: code for code, piece in pieces.languages.items()}
    for key in ("forced_bos_token_id", "decoder_start_token_id"):
        forced = codes.get(search.get(key, config.values.get(key)), target)
        if forced != target:
            raise UserError(
                f"{path.parent}: {key}: expected the id of {target}, found that of {forced}; this "
                f"model was made to translate into that. If it knows {target} too, remove {key}"
            )


def place_marks(config: Config, pieces: Pieces, codes: Codes) -> Placement:
    """What stands where, given codes as `choose_codes` returns them.

    OPUS-MT: the target's code before the source. NLLB, M2M100 and mBART50: each side begins with
    its own code. mBART: the source ends with its end and its code, the decoder begins with the
    target's. BART: each side begins with `<s>`.
    """
    kind = config["model_type"]
    if kind == "m2m_100" and told(pieces.folder, "legacy_behaviour"):
        raise UserError(
            f"{pieces.folder}: legacy_behaviour: expected false, as the code of a language stands "
            "before a sentence; found true, with which it stands behind; set it to false, as "
            "NLLB was trained"
        )
    special, words = pieces.special, pieces.words
    src, tgt = (() if code is None else (pieces.languages[code],) for code in codes)
    if kind == "mbart" and not is_mbart50(config):
        ids = pieces.sides[0].ids
        end = next(name for name, number in ids.items() if number == config["eos_token_id"])
        # A source of ours ends with one id and no more: it is their code, and the end before it a
        # piece like others.
        source = Marks((), (end,), _each_once([*special, end]), words)
        marks = source, Marks((), (), special, words)
        return Placement(marks, start=ids[tgt[0]], src_end=ids[src[0]])
    if kind == "marian":
        src, tgt = tgt, ()
    if kind == "bart":
        src = tgt = ("<s>",)
    return Placement((Marks(src, (), special, words), Marks(tgt, (), special, words)))


def _told_sides(config: Config, pieces: Pieces, given: Codes) -> tuple[bool, bool]:
    """Whether the model is told the language of source and target."""
    kind, known = config["model_type"], pieces.languages
    if kind == "marian":  # one code is no choice: a model of one language may have it left over
        return False, len(known) > 1 or (len(known) == 1 and given[1] is not None)
    if kind not in ("m2m_100", "mbart"):
        return False, False
    if not known:
        raise no_codes(pieces.folder)
    return True, True


def _find(pieces: Pieces, flag: str, code: str) -> str:
    """The code by its own name or its piece's."""
    known = pieces.languages
    by_piece = {piece: name for name, piece in known.items()}
    found = code if code in known else by_piece.get(code)
    if found is None:
        raise UserError(
            f"{flag}: expected one of the {len(known)} languages of {pieces.folder}, found "
            f"{code!r}; the nearest are {', '.join(_nearest(code, known))}"
        )
    return found


def _nearest(code: str, known: Iterable[str]) -> list[str]:
    """Names that begin alike first, then by how much they share."""

    def distance(name: str) -> tuple[bool, float, str]:
        alike = name[:2].lower() == code[:2].lower()
        return not alike, -SequenceMatcher(None, name.lower(), code.lower()).ratio(), name

    return sorted(known, key=distance)[:_NEAREST]


def _each_once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
