"""The embedded corpus: English-like sentences, their translations and their dependency trees.

The rules stand in synthetic.yaml; docs/synthetic.md describes the language.
"""

from collections.abc import Iterator, Sequence, Set
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import yaml

from headcount.base.errors import UserError
from headcount.base.files import sha256, write_text
from headcount.data.synthetic.grammar import Grammar
from headcount.data.synthetic.lexicon import Lexicon
from headcount.data.synthetic.source import SourceSide, Token
from headcount.data.synthetic.target import TargetSide

SOURCE, TARGET = "en", "art"
SPLITS = ("train", "dev", "test")
TREEBANKS = ("dev", "test")


class Sentence(NamedTuple):
    """A source sentence, its translation, and its tree; `tree` has one token a source word."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    tree: tuple[Token, ...]


def generate(
    seed: int, count: int, split: str = "train", without: Set[tuple[str, ...]] = frozenset()
) -> list[Sentence]:
    """`count` sentences of a split, none with a source sentence in `without`.

    Each split has a random stream of its own, so the first sentences stay the same when more
    are asked for. A sentence in `without` is passed over and the stream goes on.
    """
    stream = (sentence for sentence in _stream(seed, split) if sentence.source not in without)
    return list(islice(stream, count))


def generate_splits(
    seed: int, train_pairs: int, dev_pairs: int, test_pairs: int
) -> dict[str, list[Sentence]]:
    """All splits, no source sentence in two of them.

    Test is drawn first, dev passes over its sentences, train over those of both: so neither
    depends on the size of train. Within a split a short sentence may come twice.
    """
    for name, count in (("train", train_pairs), ("dev", dev_pairs), ("test", test_pairs)):
        if count < 1:
            raise UserError(f"--{name}-pairs must be at least 1, found {count}")
    test = generate(seed, test_pairs, "test")
    held_out = {sentence.source for sentence in test}
    dev = generate(seed, dev_pairs, "dev", held_out)
    held_out |= {sentence.source for sentence in dev}
    return {"train": generate(seed, train_pairs, "train", held_out), "dev": dev, "test": test}


def write_corpus(
    folder: Path, seed: int, train_pairs: int, dev_pairs: int, test_pairs: int
) -> None:
    """Write `<split>.en` and `<split>.art` for every split, `<split>.conllu` for dev and test.

    One sentence a line, words separated by a space; line n of both files belong together.
    """
    splits = generate_splits(seed, train_pairs, dev_pairs, test_pairs)
    for name, sentences in splits.items():
        write_text(folder / f"{name}.{SOURCE}", _lines(s.source for s in sentences))
        write_text(folder / f"{name}.{TARGET}", _lines(s.target for s in sentences))
    for name in TREEBANKS:
        write_text(folder / f"{name}.conllu", conllu(splits[name], name))


def conllu(sentences: Sequence[Sentence], prefix: str) -> str:
    """The trees in CoNLL-U; sentences are called `<prefix>-1`, `<prefix>-2`, …"""
    blocks = []
    for number, sentence in enumerate(sentences, start=1):
        lines = [f"# sent_id = {prefix}-{number}", f"# text = {' '.join(sentence.source)}"]
        for position, token in enumerate(sentence.tree, start=1):
            form, upos, head, deprel = token
            lines.append(f"{position}\t{form}\t_\t{upos}\t_\t_\t{head}\t{deprel}\t_\t_")
        blocks.append("\n".join(lines) + "\n\n")
    return "".join(blocks)


def manifest(folder: Path, corpus: str) -> dict[str, Any]:
    """What `write_corpus` left in a folder: each file with its checksum and size in bytes."""

    def entry(name: str) -> dict[str, Any]:
        path = folder / name
        return {"file": name, "sha256": sha256(path), "bytes": path.stat().st_size}

    sides = (SOURCE, TARGET)
    return {
        "corpus": corpus,
        "pretokenised": True,
        "splits": {split: {side: entry(f"{split}.{side}") for side in sides} for split in SPLITS},
        "trees": {split: {SOURCE: entry(f"{split}.conllu")} for split in TREEBANKS},
    }


@cache
def rules() -> dict[str, Any]:
    """The rules in synthetic.yaml."""
    text = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


@cache
def lexicon() -> Lexicon:
    """The words of the language, pseudo-words included."""
    return Lexicon(rules())


def _stream(seed: int, split: str) -> Iterator[Sentence]:
    """Sentences of allowed length without end."""
    words = lexicon()
    # A text as seed is hashed by SHA-512, so it does not change with Python's own hash seed.
    grammar = Grammar(words, rules(), Random(f"{seed} {split}"))
    source_side, target_side = SourceSide(words, rules()), TargetSide(words, rules())
    shortest, longest = rules()["length"]["shortest"], rules()["length"]["longest"]
    while True:
        derivation = grammar.derivation()
        tree = source_side.tree(derivation)
        if shortest <= len(tree) <= longest:
            source = tuple(token.form for token in tree)
            yield Sentence(source, target_side.words(derivation), tree)


def _lines(sentences: Iterator[tuple[str, ...]]) -> str:
    return "".join(" ".join(words) + "\n" for words in sentences)
