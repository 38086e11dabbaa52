"""The subwords of a pretrained model: what cuts its text, and the id of every piece.

The library's tokeniser is the authority on both. Text goes into the same pieces here, but names of
special pieces in a text are text like any other.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from headcount.base.errors import UserError
from headcount.base.settings.reading.faults import shown
from headcount.data.sentencepieces import TOKENIZER_UNIT, UNIT, Marks, RunningPieces, make_pieces
from headcount.data.vocabulary import Vocabulary
from headcount.data.words import protect
from headcount_hf.pretrained.families import TOKENIZER_CONFIG, Codes, Config, stated
from headcount_hf.pretrained.library import SEQ2SEQ, of_hugging_face, open_tokeniser

Ids = dict[str, int]

_FIXED = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_ROLES = {
    "marian": ">>.+<<",
    "m2m_100": r"[a-z]{2,3}_[A-Z][a-z]{3}|__[a-z]{2,3}__",
    "mbart": "[a-z]{2}_[A-Z]{2}",
    "pegasus": r"<(mask|unk)_\d+>",
}
"""Names of a family's own special pieces, its languages or those of pretraining."""
_UNREAD = ("auto_map", "split_special_tokens", "sp_model_kwargs", "do_lower_case")
"""Settings with which the library cuts text in a way that ours does not."""
_FILLED_UP = 128
"""Embeddings are filled up to a multiple of at most so many rows."""
_HIDDEN = "\n"
"""Before the name of a special piece: no line of text has it, so no text is cut into the piece."""


@dataclass(frozen=True)
class Side:
    """The subwords of one side."""

    model: bytes  # what cuts the text, as a pair's folder keeps it
    ids: Ids


@dataclass(frozen=True)
class Pieces:
    """The subwords of a tokeniser."""

    folder: Path
    tokeniser: Any
    unit: str
    sides: tuple[Side, Side]
    unknown: int  # id of what it does not know
    special: list[str]  # names of pieces that are no text
    languages: dict[str, str]  # piece of a language, by its code
    words: dict[str, str] = field(default_factory=dict)
    """Added tokens that are cut whole, and the pattern that finds each in a text."""

    def cutter(self, side: int, language: str, marks: Marks) -> RunningPieces:
        """Return what cuts the text of a side; it knows no ids."""
        return make_pieces(self.unit, language, self.sides[side].model, Vocabulary([]), marks)

    def vocabulary(self, side: int, rows: list[int], counts: Counter[str]) -> Vocabulary:
        """Return its pieces in the order of our ids, with their counts in some text, or 0.

        `rows`: which of their ids stands behind each of ours.
        """
        names = {number: piece for piece, number in self.sides[side].ids.items()}
        # Rows without a piece fill the embedding up; the name keeps the ids after them in place.
        pieces = (protect(names.get(row, f"<row {row}>")) for row in rows[4:])
        return Vocabulary([(piece, counts[piece]) for piece in pieces])

    @property
    def first_free(self) -> int:
        """Return the first id behind the pieces of both sides."""
        return 1 + max(max(side.ids.values()) for side in self.sides)


def read_pieces(config: Config, codes: Codes = (None, None)) -> Pieces:
    """Return the subwords of the tokeniser beside a config, told what it calls both languages.

    Raises UserError where ids are not those of the model's embedding or of the folder's files, and
    for text that is cut in a way that is not known.
    """
    _check_settings(config)
    tokeniser = open_tokeniser(config.folder, **named_languages(codes))
    check_legacy(config.folder, tokeniser)
    unit = TOKENIZER_UNIT if hasattr(tokeniser, "backend_tokenizer") else UNIT
    added = {token.content: token for token in tokeniser.added_tokens_decoder.values()}
    own = re.compile(_ROLES.get(config.model_type, "(?!)"))
    others = (getattr(tokeniser, name, ()) for name in ("lang_token_to_id", "encoder"))
    names = list(chain(added, *others))
    fixed = {*_FIXED, tokeniser.eos_token, tokeniser.unk_token, tokeniser.pad_token}
    of_family = [name for name in dict.fromkeys(names) if own.fullmatch(name)]
    roles = dict.fromkeys([*(name for name in names if name in fixed), *of_family])
    words = [token for name, token in added.items() if name not in roles]
    src = tgt = Side(_model(tokeniser, 0, roles), _ids(tokeniser, 0))
    if unit == UNIT:
        tgt = Side(_model(tokeniser, 1, roles), _ids(tokeniser, 1))
    languages = {re.sub("^(>>|__)|(<<|__)$", "", name): name for name in of_family}
    found = Pieces(
        config.folder,
        tokeniser,
        unit,
        (src, tgt),
        tokeniser.unk_token_id,
        [*roles, *(token.content for token in words if token.special)],
        {} if config.model_type == "pegasus" else languages,
        {token.content: _pattern(config.folder, unit, token) for token in words},
    )
    _check_ids(found, config)
    return found


def named_languages(codes: Codes) -> dict[str, str]:
    """Return what a tokeniser is told of languages, as far as they are known."""
    named = zip(("src_lang", "tgt_lang"), codes, strict=True)
    return {key: code for key, code in named if code} if codes[0] else {}


def check_legacy(folder: Path, tokeniser: Any) -> None:
    """Raise UserError for a tokeniser that puts the code of a language behind a sentence."""
    if getattr(tokeniser, "legacy_behaviour", False):
        raise UserError(
            f"{folder}: legacy_behaviour: expected false, as the code of a language stands "
            "before a sentence; found true, with which it stands behind; set it to false, as "
            "NLLB was trained"
        )


def _ids(tokeniser: Any, side: int) -> Ids:
    """Return the id of every piece of a side."""
    apart = side == 1 and getattr(tokeniser, "separate_vocabs", False)
    table = getattr(tokeniser, "target_encoder" if apart else "encoder", None)
    if table is None:
        return tokeniser.get_vocab()
    return tokeniser.added_tokens_encoder | getattr(tokeniser, "lang_token_to_id", {}) | table


def _model(tokeniser: Any, side: int, roles: Collection[str]) -> bytes:
    """Return the SentencePiece model of a side, or a tokenizer.json of text alone."""
    if not hasattr(tokeniser, "backend_tokenizer"):
        files = getattr(tokeniser, "spm_files", None) or [tokeniser.spm_file] * 2
        return Path(files[side]).read_bytes()
    whole = json.loads(tokeniser.backend_tokenizer.to_str())
    model = whole["model"]
    if model["type"] == "Unigram":
        model["vocab"] = [
            [_HIDDEN * (name in roles) + name, score] for name, score in model["vocab"]
        ]
    whole["added_tokens"] = [each for each in whole["added_tokens"] if each["content"] not in roles]
    whole |= dict.fromkeys(("truncation", "padding", "post_processor"))
    return json.dumps(whole, ensure_ascii=False).encode("utf-8")


def _pattern(folder: Path, unit: str, token: Any) -> str:
    """Return what finds an added token in a text, with the spaces that go with it."""
    if unit == UNIT and token.single_word:
        raise UserError(
            f"{folder}: added token {token.content!r}: expected one that may stand in a word, "
            "found single_word; our reader of SentencePiece models does not know such tokens"
        )
    return r"\s*" * token.lstrip + re.escape(token.content) + r"\s*" * token.rstrip


def _check_settings(config: Config) -> None:
    """Raise UserError for a tokeniser that the library lacks, and for settings that ours lacks."""
    library = of_hugging_face("transformers", SEQ2SEQ)
    for path in (config.path, config.folder / TOKENIZER_CONFIG):
        name = stated(path, "tokenizer_class")
        wrong = {key: "none" for key in _UNREAD if stated(path, key)}
        if name and not hasattr(library, str(name).removesuffix("Fast")):
            wrong["tokenizer_class"] = "one of the library's"
        for key, expected in wrong.items():
            raise UserError(
                f"{path}: {key}: expected {expected}, as text is cut here as by the library's own "
                f"tokenisers, found {shown(stated(path, key))}; this model cannot be imported"
            )


def _check_ids(pieces: Pieces, config: Config) -> None:
    """Raise UserError unless the ids are those of the model's embedding, and of the files.

    Rows without a piece may only fill it up at its end.
    """
    tokeniser = pieces.tokeniser
    for side, size in zip(pieces.sides, config.vocabulary_sizes, strict=True):
        for problem in _problems(side.ids, size, config, tokeniser):
            raise UserError(f"{pieces.folder}: {problem}; these pieces are another model's")
    if len(places := {side.ids.get(tokeniser.unk_token) for side in pieces.sides}) > 1:
        raise UserError(
            f"{pieces.folder}: expected {tokeniser.unk_token} at one place in both tables, found "
            f"it at {' and '.join(map(str, places))}; ours has one place for both sides"
        )


def _problems(ids: Ids, size: int, config: Config, tokeniser: Any) -> Iterator[str]:
    """Give what is wrong with the ids of a side."""
    for name, number in ids.items():
        if type(number) is not int or not 0 <= number < size:
            yield (
                f"{name!r}: expected a whole number from 0 to {size - 1} as its id, as many as "
                f"{config.path} says that there are words, found {shown(number)}"
            )
    for name, number in _stated_ids(config.folder):
        if ids.get(name) != number:
            yield f"added token {name!r}: expected the id {number}, found {ids.get(name)}"
    for key, number in (("eos", config.eos_token_id), ("unk", tokeniser.unk_token_id)):
        name = getattr(tokeniser, f"{key}_token")
        if number is None or ids.get(name) != number:
            yield f"{key}_token: expected the piece with the id {number}, found {name!r}"
    known = set(ids.values())
    if len(known) < len(ids):
        number = Counter(ids.values()).most_common(1)[0][0]
        yield f"expected an id of its own for each piece, found {number} of more than one"
    without = [row for row in range(size) if row not in known]
    if without and (len(without) >= min(_FILLED_UP, len(known)) or without[0] < max(known)):
        yield (
            f"expected a piece for each of the {size} words of {config.path}, found none for "
            f"{len(without)}, the first of them {without[0]}; fewer than {_FILLED_UP} may fill an "
            "embedding up, at its end"
        )


def _stated_ids(folder: Path) -> Iterator[tuple[str, int]]:
    """Give name and id of each added token, as the folder's files have them."""
    table = stated(folder / TOKENIZER_CONFIG, "added_tokens_decoder") or {}
    yield from ((token["content"], int(number)) for number, token in table.items())
    older = folder / "added_tokens.json"
    yield from json.loads(older.read_bytes()).items() if older.exists() else ()
