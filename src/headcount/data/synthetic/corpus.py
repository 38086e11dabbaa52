"""The embedded corpus: English-like sentences, their translations and their dependency trees.

The rules stand in corpus.yaml; docs/reference/synthetic.md describes the language.
"""

from collections.abc import Sequence, Set
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import yaml

from headcount.base.files import write_text
from headcount.base.settings.data import SyntheticSettings
from headcount.data.lines import write_lines
from headcount.data.manifest import write_manifest
from headcount.data.synthetic.grammar import Grammar
from headcount.data.synthetic.lexicon import Lexicon, read_lexicon
from headcount.data.synthetic.realisation import Realiser, Sentence
from headcount.data.trees import conllu_text

SOURCE, TARGET = "en", "art"
TREEBANKS = ("dev", "test")


def generate(
    seed: int, count: int, split: str = "train", without: Set[tuple[str, ...]] = frozenset()
) -> list[Sentence]:
    """Return `count` sentences of a split, without the source sentences `without`.

    Each split has a random stream, so its first sentences do not depend on `count`.
    """
    # Random hashes a text as seed by SHA-512, whatever Python's hash seed.
    grammar = Grammar(lexicon(), rules(), Random(f"{seed} {split}"))
    realiser, length = Realiser(lexicon(), rules()), rules()["length"]
    sentences: list[Sentence] = []
    while len(sentences) < count:
        sentence = realiser.sentence(grammar.derivation())
        fits = length["shortest"] <= len(sentence.source) <= length["longest"]
        if fits and sentence.source not in without:
            sentences.append(sentence)
    return sentences


def generate_splits(
    seed: int, train_pairs: int, dev_pairs: int, test_pairs: int
) -> dict[str, list[Sentence]]:
    """Return all splits, no source sentence in two of them.

    Test is drawn first, then dev, then train, so that test and dev do not depend on the size of
    train. Within a split a short sentence may occur twice.
    """
    test = generate(seed, test_pairs, "test")
    held_out = {sentence.source for sentence in test}
    dev = generate(seed, dev_pairs, "dev", held_out)
    held_out |= {sentence.source for sentence in dev}
    return {"train": generate(seed, train_pairs, "train", held_out), "dev": dev, "test": test}


def write_corpus(folder: Path, corpus: str, size: SyntheticSettings) -> None:
    """Write `<split>.en` and `<split>.art` for every split, `<split>.conllu` for dev and test.

    Lines have words separated by spaces. The manifest is written last.
    """
    splits = generate_splits(size.seed, size.train_pairs, size.dev_pairs, size.test_pairs)
    texts, trees = {}, {}
    for name, sentences in splits.items():
        texts[name] = {side: {"file": f"{name}.{side}"} for side in (SOURCE, TARGET)}
        write_lines(folder / f"{name}.{SOURCE}", (" ".join(s.source) for s in sentences))
        write_lines(folder / f"{name}.{TARGET}", (" ".join(s.target) for s in sentences))
    for name in TREEBANKS:
        trees[name] = {SOURCE: {"file": f"{name}.conllu"}}
        write_text(folder / f"{name}.conllu", conllu(splits[name], name))
    write_manifest(folder, {"corpus": corpus, "pretokenised": True}, texts, trees)


def conllu(sentences: Sequence[Sentence], prefix: str) -> str:
    """Return the trees in CoNLL-U. Sentences are called `<prefix>-1`, `<prefix>-2`, …"""
    return "".join(
        conllu_text(f"{prefix}-{number}", " ".join(sentence.source), sentence.tree)
        for number, sentence in enumerate(sentences, start=1)
    )


@cache
def rules() -> dict[str, Any]:
    """Return the rules in corpus.yaml."""
    return yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


@cache
def lexicon() -> Lexicon:
    """Return the words of the language, also pseudo-words."""
    return read_lexicon(rules())
