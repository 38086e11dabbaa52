"""Languages of a model, and the marks that they put around a sentence."""

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
    """Return the codes of both languages, None for a side where the model needs none.

    `given`: codes that a person chose instead of the language's name. Raises UserError for an
    unknown or needless code, and for a folder of another direction.
    """
    chosen: list[str | None] = []
    needs = needs_codes(config, pieces, given)
    for name, needed, language, code in zip(SIDES, needs, languages, given, strict=True):
        if code is not None and not needed:
            raise UserError(f"--{name}-code: expected none for this model, found {code!r}")
        flag = f"--{name}-code"
        chosen.append(_find_code(pieces, flag, code or language) if needed else None)
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
    if "MBart" in name:
        return "MBart50" in name
    return config.decoder_start_token_id == config.eos_token_id


def needs_codes(config: Config, pieces: Pieces, given: Codes) -> tuple[bool, bool]:
    """Return for source and target whether the model needs the code of the language."""
    kind, known = config.model_type, pieces.languages
    if kind == "marian":  # a single code may be left over in a model of one language
        return False, len(known) > 1 or (len(known) == 1 and given[1] is not None)
    if kind not in ("m2m_100", "mbart"):
        return False, False
    if not known:
        raise UserError(f"{pieces.folder}: expected languages among the special tokens, found none")
    return True, True


def _find_code(pieces: Pieces, flag: str, code: str) -> str:
    """Return a code, given by its name or by the name of its piece."""
    known = pieces.languages
    by_piece = {piece: name for name, piece in known.items()}
    name = code if code in known else by_piece.get(code)
    if name is None:
        begin_alike = sorted(known, key=lambda name: (name[:2].lower() != code[:2].lower(), name))
        raise UserError(
            f"{flag}: expected one of the {len(known)} languages of {pieces.folder}, found "
            f"{code!r}; the nearest are {', '.join(begin_alike[:_NEAREST])}"
        )
    return name
