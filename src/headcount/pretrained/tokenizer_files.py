"""The files of a tokenizer as Hugging Face's library saves them; none of them is code."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from headcount.base.errors import UserError
from headcount.base.files import write_json
from headcount.base.settings.faults import shown

TOKENIZER = "tokenizer.json"
_TOLD_IN = ("tokenizer_config.json", "special_tokens_map.json")
_HIDDEN = "\n"
"""Before the name of a special piece: no line of text has it, so no text is cut into the piece."""

Json = dict[str, Any]


def read_bytes(path: Path, what: str) -> bytes:
    """The bytes of a file. Raises UserError with `what` was expected there."""
    try:
        return path.read_bytes()
    except FileNotFoundError as fault:
        raise UserError(f"{path}: expected {what}, found no file") from fault


def read_ids(path: Path, needed: Iterable[str] = ("<unk>",)) -> dict[str, int]:
    """The id of every piece. Raises UserError for a damaged file, or without the `needed` ones."""
    content = read_bytes(path, "the ids of the pieces")
    try:
        found = json.loads(content)
        for piece in needed:
            found[piece]
    except (ValueError, TypeError, KeyError) as fault:
        raise UserError(f"{path}: damaged, or not the ids of pieces ({fault})") from fault
    _check_ids(path, found)
    return found


def _check_ids(path: Path, ids: Json) -> None:
    """Raise UserError naming the first piece whose id is no number from 0."""
    for piece, number in ids.items():
        if type(number) is not int or number < 0:
            raise UserError(
                f"{path}: {piece!r}: expected a whole number from 0 as its id, found "
                f"{shown(number)}; fetch the file again"
            )


def settings_files(folder: Path) -> list[Path]:
    """Those that tell how the tokenizer is used, as far as there are any."""
    return [folder / name for name in _TOLD_IN if (folder / name).exists()]


def told(folder: Path, key: str) -> Any:
    """What such a file says under a key; None without one. Raises UserError if one is damaged."""
    for path in settings_files(folder):
        try:
            found = json.loads(path.read_bytes()).get(key)
        except (ValueError, AttributeError) as fault:
            raise UserError(f"{path}: damaged, expected an object of settings ({fault})") from fault
        if found is not None:
            return found
    return None


def listed_special(folder: Path) -> list[str]:
    """Names of special pieces that such a file lists, in the order of their ids."""
    keys = ("additional_special_tokens", "extra_special_tokens")
    found = next(filter(None, (told(folder, key) for key in keys)), [])
    return [each["content"] if isinstance(each, dict) else each for each in found]


class TokenizerFile:
    """A tokenizer.json."""

    def __init__(self, path: Path):
        """Raises UserError if it is missing, damaged, or cuts text in a way that is not known."""
        self.path = path
        content = read_bytes(path, "a tokenizer")
        try:
            self._whole = json.loads(content)
            self._model = self._whole["model"]
            added = self._whole["added_tokens"]
            self.special = {each["content"]: each["id"] for each in added if each["special"]}
            self._others = [each for each in added if not each["special"]]
            self.kind = self._model["type"]
            if self.kind not in ("BPE", "Unigram"):
                raise UserError(f"{path}: model.type: expected BPE or Unigram, found {self.kind!r}")
            self._whole["decoder"]["type"]  # without one it cannot join pieces
            vocabulary = self._model["vocab"]
            if self.kind == "Unigram":
                vocabulary = {name: number for number, (name, _) in enumerate(vocabulary)}
            added_ids = {each["content"]: each["id"] for each in self._others}
            self.ids: dict[str, int] = {**vocabulary, **added_ids, **self.special}
        except (ValueError, TypeError, KeyError) as fault:
            raise UserError(f"{path}: damaged, or no tokenizer ({fault})") from fault
        _check_ids(path, self.ids)

    @property
    def unknown(self) -> int:
        """The id of what it does not know. Raises UserError if there is none."""
        of_bpe = self.ids.get(self._model.get("unk_token") or "<unk>")
        found = self._model.get("unk_id") if self.kind == "Unigram" else of_bpe
        if found is None:
            raise UserError(f"{self.path}: expected a piece for what is unknown, found none")
        return found

    def of_text(self) -> bytes:
        """The same tokenizer, for which names of special pieces are text, and no marks are set."""
        model = dict(self._model)
        if self.kind == "Unigram":
            model["vocab"] = [
                [_HIDDEN * (name in self.special) + name, score] for name, score in model["vocab"]
            ]
        none = dict.fromkeys(("truncation", "padding", "post_processor"))
        whole = {**self._whole, **none, "added_tokens": self._others, "model": model}
        return json.dumps(whole, ensure_ascii=False).encode("utf-8")


def byte_level(ids: dict[str, int], merges: Path, space_first: bool) -> bytes:
    """A tokenizer.json of byte-level BPE, from what stands in vocab.json and merges.txt.

    `space_first`: whether a sentence is cut as if a space stood before it. Raises UserError naming
    a line that is no merge.
    """
    content = read_bytes(merges, "the merges of BPE").decode("utf-8", errors="replace")
    pairs = []
    for number, line in enumerate(content.split("\n"), start=1):
        if not line or line.startswith("#version"):
            continue
        pairs.append(line.split(" "))
        if len(pairs[-1]) != 2 or not {*pairs[-1], "".join(pairs[-1])} <= ids.keys():
            raise UserError(
                f"{merges}:{number}: expected two pieces that merge into a third, found "
                f"{line[:40]!r}; fetch the file again"
            )
    rules = {"type": "ByteLevel", "trim_offsets": True, "use_regex": True}
    rules["add_prefix_space"] = space_first
    model = {"type": "BPE", "dropout": None, "unk_token": None, "vocab": ids, "merges": pairs}
    model |= {"continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": False}
    whole = {"version": "1.0", "added_tokens": [], "pre_tokenizer": rules, "decoder": rules}
    whole |= dict.fromkeys(("truncation", "padding", "normalizer", "post_processor"))
    return json.dumps({**whole, "model": model}, ensure_ascii=False).encode("utf-8")


def add_special(folder: Path, name: str, number: int) -> None:
    """Write a special piece with the next free id into the files of a folder's tokenizer."""
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
    token = flags | {"content": name, "normalized": False, "special": True}
    told_in = {path: json.loads(path.read_bytes()) for path in settings_files(folder)}
    config = told_in.setdefault(folder / _TOLD_IN[0], {})
    whole = folder / TOKENIZER
    if whole.exists():
        found = json.loads(whole.read_bytes())
        found["added_tokens"].append({"id": number} | token)
        write_json(whole, found)
    elif "added_tokens_decoder" not in config:  # with it the library reads no older files
        for key, value in told_in.get(folder / _TOLD_IN[1], {}).items():
            config[key] = value | {"__type": "AddedToken"} if isinstance(value, dict) else value
        older = folder / "added_tokens.json"
        known = json.loads(older.read_bytes()) if older.exists() else {}
        config["added_tokens_decoder"] = {
            str(place): flags | {"content": piece, "special": piece in listed_special(folder)}
            for piece, place in known.items()
        }
    if "added_tokens_decoder" in config:
        config["added_tokens_decoder"][str(number)] = token
    keys = ("extra_special_tokens", "additional_special_tokens")
    lists = [(f, key) for f in told_in.values() for key in keys if isinstance(f.get(key), list)]
    if not lists and (folder / "vocab.json").exists():  # others have a list of their own in code
        lists = [(config, keys[1])]
    for found, key in lists:
        found[key] = [*(found.get(key) or []), name]
    for path, found in told_in.items():
        write_json(path, found)
