"""The subwords of a pretrained model: what cuts its text, and the id of every piece."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from headcount.base.errors import UserError
from headcount.base.folders import SIDES
from headcount.data.sentencepieces import (
    TOKENIZER_UNIT,
    UNIT,
    Marks,
    RunningPieces,
    load_sentencepiece,
    make_pieces,
)
from headcount.data.vocabulary import Vocabulary
from headcount.data.words import protect
from headcount_hf.pretrained.families import Config, is_mbart50, known_codes, tokenizer_class
from headcount_hf.pretrained.tokenizer_files import (
    TOKENIZER,
    TOKENIZER_CONFIG,
    TokenizerFile,
    added_tokens,
    byte_level,
    ends,
    named_special,
    read_bytes,
    read_ids,
    settings_files,
    stated_tokens,
    told,
)

Ids = dict[str, int]

_SENTENCEPIECE = "a SentencePiece model"
_FAIRSEQ = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
"""Its first ids; pieces of a SentencePiece model, whose own three stand first, follow on."""
_ROLES = {
    "m2m_100": r"[a-z]{2,3}_[A-Z][a-z]{3}|__[a-z]{2,3}__",
    "mbart": "[a-z]{2}_[A-Z]{2}",
    "pegasus": r"<(mask|unk)_\d+>",
}
"""Names of a family's own special pieces, its languages or those of pretraining."""
_FILLED_UP = 128
"""Embeddings are filled up to a multiple of at most so many rows."""


@dataclass(frozen=True)
class Side:
    """The subwords of one side."""

    cuts: Path  # file that cuts the text
    model: bytes  # the same, as a pair's folder keeps it
    numbers: Path  # file that tells the ids
    ids: Ids


@dataclass(frozen=True)
class Pieces:
    """What the folder of a model says of its subwords."""

    folder: Path
    unit: str
    sides: tuple[Side, Side]
    unknown: int  # id of what it does not know
    files: list[Path]  # all that was read
    special: list[str] = field(default_factory=list)  # names of pieces that are no text
    languages: dict[str, str] = field(default_factory=dict)  # piece of a language, by its code
    words: dict[str, str] = field(default_factory=dict)
    """Added tokens that are cut whole, and the pattern that finds each in a text."""

    def cutter(self, side: int, language: str, marks: Marks) -> RunningPieces:
        """What cuts the text of a side; it knows no ids. Raises UserError naming a bad file."""
        of_side = self.sides[side]
        try:
            return make_pieces(self.unit, language, of_side.model, Vocabulary([]), marks)
        except UserError as fault:
            raise UserError(f"{of_side.cuts}: {fault}") from fault

    def check(self, config: Config) -> None:
        """Raise UserError unless the ids are those of the model's embedding.

        Rows without a piece may only fill it up at its end.
        """
        for side, size in zip(self.sides, config.vocabulary_sizes, strict=True):
            known = set(side.ids.values())
            if max(known) >= size:
                raise UserError(
                    f"{side.numbers}: expected ids below {size}, as many as {config.path} says "
                    f"that there are words, found {max(known)}; these pieces are another model's"
                )
            if len(known) < len(side.ids):
                number = Counter(side.ids.values()).most_common(1)[0][0]
                raise UserError(
                    f"{side.numbers}: expected an id of its own for each piece, found {number} of "
                    "more than one; fetch the file again"
                )
            if config["eos_token_id"] not in known:
                raise UserError(
                    f"{side.numbers}: expected a piece with the id {config['eos_token_id']}, the "
                    f"eos_token_id of {config.path}, found none; these pieces are another model's"
                )
            without = [row for row in range(size) if row not in known]
            if without and (len(without) >= _FILLED_UP or without[0] < max(known)):
                raise UserError(
                    f"{side.numbers}: expected a piece for each of the {size} words of "
                    f"{config.path}, found none for {len(without)}, the first of them "
                    f"{without[0]}; fewer than {_FILLED_UP} may fill an embedding up, at its end: "
                    "these pieces are another model's"
                )

    def vocabulary(self, side: int, rows: list[int], counts: Counter[str]) -> Vocabulary:
        """Its pieces in the order of our ids, with their counts in some text, or 0.

        `rows`: which of their ids stands behind each of ours.
        """
        names = {number: piece for piece, number in self.sides[side].ids.items()}
        # Rows without a piece fill the embedding up; the name keeps the ids after them in place.
        pieces = (protect(names.get(row, f"<row {row}>")) for row in rows[4:])
        return Vocabulary([(piece, counts[piece]) for piece in pieces])


def read_pieces(config: Config) -> Pieces:
    """The subwords beside a config. Raises UserError for files that are missing or damaged."""
    folder, kind = config.path.parent, config["model_type"]
    name = tokenizer_class(config)
    if kind == "marian":
        pieces = _of_marian(config)
    elif kind == "m2m_100" and (folder / "vocab.json").exists() and "M2M100" in (name or "M2M100"):
        pieces = _of_m2m100(folder)
    elif (folder / TOKENIZER).exists():
        pieces = _of_tokenizer(config)
    else:
        pieces = _WITHOUT_TOKENIZER[kind](config)
    pieces = _with_added(pieces, config)
    pieces.check(config)
    return pieces


def _with_added(pieces: Pieces, config: Config) -> Pieces:
    """The pieces and the tokens that were added to them.

    Raises UserError where files contradict each other, and for a token that is not read.
    """
    roles = ends(pieces.folder).union(pieces.special)
    added = added_tokens(pieces.folder, [side.ids for side in pieces.sides], roles)
    new, rows = {name: each.id for name, each in added.items()}, min(config.vocabulary_sizes)
    src, tgt = (replace(side, ids=side.ids | new) for side in pieces.sides)
    named = named_special(pieces.folder)
    for key, number in (("eos_token", config["eos_token_id"]), ("unk_token", pieces.unknown)):
        if key in named and tgt.ids.get(named[key]) != number:
            raise UserError(
                f"{pieces.folder / TOKENIZER_CONFIG}: {key}: expected the piece with the id "
                f"{number}, found {named[key]!r}"
            )
    words = [each for name, each in added.items() if name not in roles]
    special = dict.fromkeys([*pieces.special, *(each.name for each in words if each.special)])
    patterns = {each.name: each.pattern(rows, tgt.cuts, tgt.numbers) for each in words}
    return replace(pieces, sides=(src, tgt), special=list(special), words=patterns)


def _of_marian(config: Config) -> Pieces:
    """A SentencePiece model for each side, and one table of ids, or one for each side.

    The library takes one table where `separate_vocabs` is not true, also for separate embeddings.
    """
    folder = config.path.parent
    models = [folder / name for name in ("source.spm", "target.spm")]
    tables = [folder / "vocab.json"] * len(SIDES)
    if not config.joint and (folder / "target_vocab.json").exists():
        tables[1] = folder / "target_vocab.json"
    if (tables[1] != tables[0]) != bool(told(folder, "separate_vocabs")):
        raise UserError(
            f"{folder}: separate_vocabs of tokenizer_config.json: expected true with "
            "target_vocab.json and share_encoder_decoder_embeddings false, else false; found "
            f"{told(folder, 'separate_vocabs')}; put there what the model was trained with"
        )
    sides = tuple(
        Side(model, read_bytes(model, _SENTENCEPIECE), table, read_ids(table))
        for model, table in zip(models, tables, strict=True)
    )
    codes = [piece for piece in sides[0].ids if piece[:2] == ">>" and piece[-2:] == "<<"]
    files = [*models, *sorted(set(tables)), *settings_files(folder)]
    languages = {piece[2:-2]: piece for piece in codes}
    if len(unknown := {side.ids["<unk>"] for side in sides}) > 1:
        raise UserError(
            f"{tables[1]}: expected <unk> at its place in {tables[0].name}, found it elsewhere "
            f"(places {', '.join(map(str, sorted(unknown)))}); ours has one place for both sides"
        )
    return Pieces(folder, UNIT, sides, sides[1].ids["<unk>"], files, codes, languages)


def _of_m2m100(folder: Path) -> Pieces:
    """A SentencePiece model and a table of ids; codes of languages follow."""
    model, table = folder / "sentencepiece.bpe.model", folder / "vocab.json"
    ids = read_ids(table, _FAIRSEQ)
    codes = known_codes(told(folder, "language_codes") or "m2m100", folder)
    languages = {code: f"__{code}__" for code in codes}
    whole = ids | {name: len(ids) + place for place, name in enumerate(languages.values())}
    side = Side(model, read_bytes(model, _SENTENCEPIECE), table, whole)
    files = [model, table, *settings_files(folder)]
    special = [*_FAIRSEQ, *languages.values()]
    return Pieces(folder, UNIT, (side, side), ids["<unk>"], files, special, languages)


def _of_fairseq(config: Config) -> Pieces:
    """A SentencePiece model whose ids are one higher; codes follow, for NLLB as files state."""
    folder = config.path.parent
    path = folder / "sentencepiece.bpe.model"
    names, model = _names(path)
    ids = {name: place for place, name in enumerate([*_FAIRSEQ, *names[3:]])}
    codes: list[str] = []
    if config["model_type"] == "mbart":
        codes = known_codes("mbart50" if is_mbart50(config) else "mbart", folder)
        ids |= {name: len(ids) + place for place, name in enumerate([*codes, "<mask>"])}
    own = re.compile(_ROLES[config["model_type"]])
    stated = {each.name: each.id for each in stated_tokens(folder) if own.fullmatch(each.name)}
    codes += [name for name in stated if name not in codes]
    if not codes:
        raise no_codes(folder)
    side, files = Side(path, model, path, stated | ids), [path, *settings_files(folder)]
    special = [*_FAIRSEQ, *codes, "<mask>"]
    languages = {code: code for code in codes}
    return Pieces(folder, UNIT, (side, side), ids["<unk>"], files, special, languages)


def _of_pegasus(config: Config) -> Pieces:
    """A SentencePiece model, between whose first ids and others stand those of pretraining."""
    folder = config.path.parent
    path = folder / "spiece.model"
    names, model = _names(path)
    offset = told(folder, "offset")
    offset = 103 if offset is None else offset
    if type(offset) is not int or offset < 0:
        raise UserError(f"{folder}: offset: expected a whole number from 0, found {offset!r}")
    between = ["<mask_1>", "<mask_2>", *(f"<unk_{i}>" for i in range(2, offset))][:offset]
    ids = {name: place for place, name in enumerate([*names[:2], *between, *names[2:]])}
    side, files = Side(path, model, path, ids), [path, *settings_files(folder)]
    special = [*names[:3], *between]
    return Pieces(folder, UNIT, (side, side), ids[names[2]], files, special)


def _of_bart(config: Config) -> Pieces:
    """Byte-level BPE: a table of ids, and merges."""
    folder = config.path.parent
    table, merges = folder / "vocab.json", folder / "merges.txt"
    ids = read_ids(table, _FAIRSEQ)
    model = byte_level(ids, merges, bool(told(folder, "add_prefix_space")))
    side, files = Side(table, model, table, ids), [table, merges, *settings_files(folder)]
    special = [name for name in (*_FAIRSEQ, "<mask>") if name in ids]
    return Pieces(folder, TOKENIZER_UNIT, (side, side), ids["<unk>"], files, special)


def _of_tokenizer(config: Config) -> Pieces:
    """A tokenizer.json, which tells all ids and which of them are special."""
    folder = config.path.parent
    found = TokenizerFile(folder / TOKENIZER)
    own, fixed = re.compile(_ROLES.get(config["model_type"], "(?!)")), {*_FAIRSEQ, "<mask>"}
    fixed |= ends(folder)
    special = [name for name in found.added if name in fixed or own.fullmatch(name)]
    side = Side(found.path, found.of_text(special), found.path, found.ids)
    files = [found.path, *settings_files(folder)]
    codes = (name for name, flag in found.added.items() if flag or name in special)
    languages = {code: code for code in codes if not code.startswith("<")}
    return Pieces(folder, TOKENIZER_UNIT, (side, side), found.unknown, files, special, languages)


def no_codes(folder: Path) -> UserError:
    """That a tokenizer does not tell which languages the model knows."""
    return UserError(
        f"{folder}: expected the ids of languages under added_tokens_decoder of "
        f"{TOKENIZER_CONFIG}, found none; a {TOKENIZER} has them too"
    )


_WITHOUT_TOKENIZER: dict[str, Callable[[Config], Pieces]] = {
    "bart": _of_bart,
    "pegasus": _of_pegasus,
    "mbart": _of_fairseq,
    "m2m_100": _of_fairseq,
}


def _names(path: Path) -> tuple[list[str], bytes]:
    """The names of the pieces of a SentencePiece model, in the order of its ids; its bytes."""
    content = read_bytes(path, f"{_SENTENCEPIECE} or a {TOKENIZER}")
    try:
        model = load_sentencepiece(content)
    except UserError as fault:
        raise UserError(f"{path}: {fault}") from fault
    return [model.id_to_piece(number) for number in range(len(model))], content
