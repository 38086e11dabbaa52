"""Subwords of a pretrained model, as the library's tokeniser cuts and numbers them.

One difference: the name of a special piece in a text is text here.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from headcount.base.errors import UserError
from headcount.base.settings.checking import shown
from headcount.data.sentencepieces import TOKENIZER_UNIT, UNIT
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
"""Names of special pieces of a family: languages, or masks of pretraining."""
_UNREAD = ("auto_map", "split_special_tokens", "sp_model_kwargs", "do_lower_case")
"""Settings with which the library cuts text in a way that is not supported here."""
_FILLED_UP = 128  # largest multiple to which embeddings are filled up with unused rows
_HIDDEN = "\n"  # prefix of the names of special pieces, so that no text is cut into them


class Side(NamedTuple):
    """The subwords of one side."""

    model: bytes  # SentencePiece model or tokenizer.json, as in a pair's folder
    ids: Ids


@dataclass(frozen=True)
class Pieces:
    """The subwords of a tokeniser."""

    unit: str
    sides: tuple[Side, Side]
    unknown: int  # id of unknown pieces
    special: list[str]  # names of pieces that are not text
    languages: dict[str, str]  # piece of a language, by its code
    words: dict[str, str]  # pattern of every added token that is cut whole

    def vocabulary(self, side: int, rows: list[int], counts: Counter[str]) -> Vocabulary:
        """Return the pieces of a side in the order of our ids, with their counts in a text."""
        names = {number: piece for piece, number in self.sides[side].ids.items()}
        # Unused rows of the embedding get a name, so that the ids after them stay in place.
        pieces = (protect(names.get(row, f"<row {row}>")) for row in rows[4:])
        return Vocabulary([(piece, counts[piece]) for piece in pieces])


def read_pieces(config: Config) -> Pieces:
    """Return the subwords of a model. Raises UserError for ids that its files contradict."""
    folder, kind = config.folder, config.model_type
    _check_settings(config)
    tokeniser = open_tokeniser(folder)
    unit = TOKENIZER_UNIT if hasattr(tokeniser, "backend_tokenizer") else UNIT
    added = {token.content: token for token in tokeniser.added_tokens_decoder.values()}
    tables = (getattr(tokeniser, name, ()) for name in ("lang_token_to_id", "encoder"))
    names = dict.fromkeys(chain(added, *tables))
    fixed = {*_FIXED, tokeniser.eos_token, tokeniser.unk_token, tokeniser.pad_token}
    of_family = [name for name in names if re.fullmatch(_ROLES.get(kind, "(?!)"), name)]
    roles = dict.fromkeys([*(name for name in names if name in fixed), *of_family])
    words = [token for name, token in added.items() if name not in roles]
    src = Side(_model(tokeniser, 0, roles), _ids(tokeniser, 0))
    tgt = Side(_model(tokeniser, 1, roles), _ids(tokeniser, 1)) if unit == UNIT else src
    _check_ids((src, tgt), config, tokeniser)
    languages = {re.sub("^(>>|__)|(<<|__)$", "", name): name for name in of_family}
    return Pieces(
        unit,
        (src, tgt),
        tokeniser.unk_token_id,
        [*roles, *(token.content for token in words if token.special)],
        {} if kind == "pegasus" else languages,
        {token.content: _pattern(folder, unit, token) for token in words},
    )


def named_languages(codes: Codes) -> dict[str, str]:
    """Return the arguments of a tokeniser that name its languages."""
    named = zip(("src_lang", "tgt_lang"), codes, strict=True)
    return {key: code for key, code in named if code} if codes[0] else {}


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
    added = whole["added_tokens"]
    whole["added_tokens"] = [token for token in added if token["content"] not in roles]
    whole |= dict.fromkeys(("truncation", "padding", "post_processor"))
    return json.dumps(whole, ensure_ascii=False).encode("utf-8")


def _pattern(folder: Path, unit: str, token: Any) -> str:
    """Return a pattern that matches an added token in a text, with its spaces."""
    if unit == UNIT and token.single_word:
        raise UserError(
            f"{folder}: added token {token.content!r}: expected single_word false, found true, "
            "which is not supported for SentencePiece models"
        )
    return r"\s*" * token.lstrip + re.escape(token.content) + r"\s*" * token.rstrip


def _check_settings(config: Config) -> None:
    """Raise UserError for a tokeniser that the library lacks, or settings not supported here."""
    library = of_hugging_face("transformers", SEQ2SEQ)
    for path in (config.path, config.folder / TOKENIZER_CONFIG):
        name = stated(path, "tokenizer_class")
        wrong = {key: "none" for key in _UNREAD if stated(path, key)}
        if name and not hasattr(library, str(name).removesuffix("Fast")):
            wrong["tokenizer_class"] = "one of the library's"
        for key, expected in wrong.items():
            value = shown(stated(path, key))
            raise UserError(f"{path}: {key}: expected {expected}, found {value}")


def _check_ids(sides: tuple[Side, Side], config: Config, tokeniser: Any) -> None:
    """Raise UserError unless the ids agree with the model's embedding and the folder's files."""
    for side, size in zip(sides, config.vocabulary_sizes, strict=True):
        for problem in _problems(side.ids, size, config, tokeniser):
            raise UserError(f"{config.folder}: {problem}; these pieces are another model's")
    name = tokeniser.unk_token
    if sides[0].ids.get(name) != sides[1].ids.get(name):
        raise UserError(f"{config.folder}: expected one id of {name} in both tables, found two")


def _problems(ids: Ids, size: int, config: Config, tokeniser: Any) -> Iterator[str]:
    """Yield problems with the ids of a side."""
    for name, number in ids.items():
        if type(number) is not int or not 0 <= number < size:
            yield f"{name!r}: expected an id from 0 to {size - 1}, found {shown(number)}"
    table = stated(config.folder / TOKENIZER_CONFIG, "added_tokens_decoder") or {}
    added = [(token["content"], int(number)) for number, token in table.items()]
    older = config.folder / "added_tokens.json"
    added += json.loads(older.read_bytes()).items() if older.exists() else ()
    for name, number in added:
        if ids.get(name) != number:
            yield f"added token {name!r}: expected the id {number}, found {ids.get(name)}"
    for key, number in (("eos", config.eos_token_id), ("unk", tokeniser.unk_token_id)):
        name = getattr(tokeniser, f"{key}_token")
        if number is None or ids.get(name) != number:
            yield f"{key}_token: expected the piece with the id {number}, found {name!r}"
    known = set(ids.values())
    if len(known) < len(ids):
        number = Counter(ids.values()).most_common(1)[0][0]
        yield f"expected an id for every piece, found {number} of more than one"
    without = [row for row in range(size) if row not in known]
    if without and (len(without) >= min(_FILLED_UP, len(known)) or without[0] < max(known)):
        yield (
            f"expected a piece for every one of the {size} words of {config.path}, found none for "
            f"{len(without)}, the first of them {without[0]} (the last {_FILLED_UP} may be unused)"
        )
