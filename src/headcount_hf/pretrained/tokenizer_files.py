"""The files of a tokenizer as Hugging Face's library saves them; none of them is code."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from headcount.base.errors import UserError
from headcount.base.files import write_json
from headcount.base.settings.faults import shown

TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
_ADDED = "added_tokens.json"
_TOLD_IN = (TOKENIZER_CONFIG, "special_tokens_map.json")
_ENDS = {"eos": "</s>", "unk": "<unk>", "pad": "<pad>"}
_USUAL = ("<s>", "<mask>")
"""Special tokens that some files name though no vocabulary has them."""
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
    """Files that say how the tokenizer is used and which tokens were added, where they exist."""
    return [folder / name for name in (*_TOLD_IN, _ADDED) if (folder / name).exists()]


def told(folder: Path, key: str) -> Any:
    """What such a file says under a key; None without one. Raises UserError if one is damaged."""
    return next((found for found in _told(folder, key) if found is not None), None)


def _told(folder: Path, key: str) -> Iterator[Any]:
    for path in [folder / name for name in _TOLD_IN if (folder / name).exists()]:
        try:
            yield json.loads(path.read_bytes()).get(key)
        except (ValueError, AttributeError) as fault:
            raise UserError(f"{path}: damaged, expected an object of settings ({fault})") from fault


def listed_special(folder: Path) -> list[str]:
    """Return the names of special pieces that such files list."""
    keys = ("additional_special_tokens", "extra_special_tokens")
    lists = [names for key in keys for names in _told(folder, key) if names]
    found = (names.values() if isinstance(names, dict) else names for names in lists)
    return [
        _name(folder, "additional_special_tokens", token)
        for names in found
        for token in (names if isinstance(names, Iterable) else [names])
    ]


def named_special(folder: Path) -> dict[str, str]:
    """Return the special pieces that have a role, by the key of the role, such as `eos_token`."""
    keys = [f"{role}_token" for role in ("bos", "eos", "unk", "sep", "pad", "cls", "mask")]
    return {key: _name(folder, key, token) for key in keys if (token := told(folder, key))}


def ends(folder: Path) -> set[str]:
    """Return the names of pieces that have a row of their own in our models.

    No text is cut into them.
    """
    named = named_special(folder)
    return {named.get(f"{role}_token", name) for role, name in _ENDS.items()} | {*_ENDS.values()}


def _name(folder: Path, key: str, token: Any) -> str:
    found = token.get("content") if isinstance(token, dict) else token
    if not isinstance(found, str):
        raise UserError(
            f"{folder}: {key} of {' or '.join(_TOLD_IN)}: expected the name of a token, found "
            f"{shown(token)}; fetch the file again"
        )
    return found


class Added(NamedTuple):
    """A token that was added to a tokenizer, and how the library finds it in text."""

    path: Path  # file that states it
    name: str
    id: int
    special: bool
    lstrip: bool
    rstrip: bool
    single_word: bool
    normalized: bool

    def pattern(self, rows: int, cuts: Path, ids: Path) -> str:
        """Return what finds the token in a text, with the spaces that go with it.

        `rows`: rows of the model; `cuts`, `ids`: files that cut the text and give the ids. Raises
        UserError for a token without a row, and where the library cuts the text around it with
        another program than ours.
        """
        expected = "" if self.id < rows else f"an id below {rows}, the rows of the model"
        if cuts.name != TOKENIZER and (cuts == ids or self.single_word):
            expected = f"{TOKENIZER}, which says how {cuts.name} cuts text around added tokens"
        if expected:
            raise _contradiction(self, expected, f"none, and id {self.id}")
        return r"\s*" * self.lstrip + re.escape(self.name) + r"\s*" * self.rstrip


def stated_tokens(folder: Path) -> list[Added]:
    """Return the added tokens of each file that states any, the library's own among them.

    Raises UserError for a damaged file.
    """
    special = {*listed_special(folder), *named_special(folder).values()}
    readers: dict[str, Callable[[Any], Any]] = {
        TOKENIZER: lambda whole: [(each["id"], each) for each in whole["added_tokens"]],
        TOKENIZER_CONFIG: lambda whole: [
            (int(number), each) for number, each in whole.get("added_tokens_decoder", {}).items()
        ],
        _ADDED: lambda whole: [
            (number, {"content": name, "special": name in special})
            for name, number in whole.items()
        ],
    }
    found: list[Added] = []
    for path in [folder / name for name in readers if (folder / name).exists()]:
        try:
            stated = readers[path.name](json.loads(path.read_bytes()))
            found += [_added(path, number, entry) for number, entry in stated]
        except (ValueError, TypeError, KeyError, AttributeError) as fault:
            raise UserError(f"{path}: damaged, or not the added tokens ({fault!r})") from fault
    for each in found:
        _check_ids(each.path, {each.name: each.id})
    return found


def _added(path: Path, number: int, entry: Json) -> Added:
    special = bool(entry.get("special"))
    flags = (bool(entry.get(flag)) for flag in ("lstrip", "rstrip", "single_word"))
    normalized = bool(entry.get("normalized", not special))
    return Added(path, entry["content"], number, special, *flags, normalized)


def added_tokens(
    folder: Path, ids: Sequence[Mapping[str, int]], roles: Collection[str]
) -> dict[str, Added]:
    """Return the added tokens by name.

    `ids`: the ids that other files give; `roles`: names of tokens that no text is cut into, so that
    their flags do not matter. Raises UserError naming a file that contradicts another one.
    """
    stated, found = stated_tokens(folder), dict[str, Added]()
    names = [{number: name for name, number in side.items()} for side in ids]
    for each in stated:
        other = found.setdefault(each.name, each)
        flags = each.path.name != _ADDED and each.name not in roles  # that file has none
        if each.id != other.id or (flags and each[3:] != other[3:]):
            raise _contradiction(each, f"{other[2:]}, as in {other.path.name}", each[2:])
        for side, holders in zip(ids, names, strict=True):
            holder, known = holders.setdefault(each.id, each.name), side.get(each.name, each.id)
            if known != each.id or holder != each.name:
                raise _contradiction(each, f"{known}, of no other token", f"{each.id} of {holder}")
    for path in {each.path: None for each in stated if each.path.name != _ADDED}:
        here = {each.name for each in stated if each.path == path} | set(roles)
        for each in [each for name, each in found.items() if name not in here]:
            raise _contradiction(each, f"it in {path.name}, too", "none")
    for name in (*listed_special(folder), *named_special(folder).values()):
        if name not in (*roles, *_USUAL) and not (name in found and found[name].special):
            raise UserError(
                f"{folder}: special token {name!r}: expected its id in {_ADDED} or "
                f"under added_tokens_decoder of {TOKENIZER_CONFIG}, found none; {_AGAIN}"
            )
    return found


_AGAIN = "save the tokenizer again with save_pretrained, as the model was trained with it"


def _contradiction(each: Added, expected: str, found: object) -> UserError:
    return UserError(
        f"{each.path}: added token {each.name!r}: expected {expected}, found {found}; {_AGAIN}"
    )


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
            self.added = {each["content"]: bool(each["special"]) for each in added}
            self.kind = self._model["type"]
            if self.kind not in ("BPE", "Unigram"):
                raise UserError(f"{path}: model.type: expected BPE or Unigram, found {self.kind!r}")
            self._whole["decoder"]["type"]  # without one it cannot join pieces
            vocabulary = self._model["vocab"]
            if self.kind == "Unigram":
                vocabulary = {name: number for number, (name, _) in enumerate(vocabulary)}
            added_ids = {each["content"]: each["id"] for each in added}
            self.ids: dict[str, int] = added_ids | vocabulary
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

    def of_text(self, roles: Collection[str]) -> bytes:
        """The same tokenizer, for which names of these pieces are text, and no marks are set."""
        model = dict(self._model)
        if self.kind == "Unigram":
            model["vocab"] = [
                [_HIDDEN * (name in roles) + name, score] for name, score in model["vocab"]
            ]
        none = dict.fromkeys(("truncation", "padding", "post_processor"))
        added = [each for each in self._whole["added_tokens"] if each["content"] not in roles]
        whole = {**self._whole, **none, "added_tokens": added, "model": model}
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
        older = folder / _ADDED
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
