"""The embedded corpus: English-like sentences, their translations and their dependency trees.

The rules stand in corpus.yaml; docs/reference/synthetic.md describes the language.
"""

from collections.abc import Iterator, Sequence, Set
from functools import cache
from itertools import islice
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
from headcount.data.synthetic.spelling import Sentence, Speller

SOURCE, TARGET = "en", "art"
TREEBANKS = ("dev", "test")


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
    test = generate(seed, test_pairs, "test")
    held_out = {sentence.source for sentence in test}
    dev = generate(seed, dev_pairs, "dev", held_out)
    held_out |= {sentence.source for sentence in dev}
    return {"train": generate(seed, train_pairs, "train", held_out), "dev": dev, "test": test}


def write_corpus(folder: Path, corpus: str, size: SyntheticSettings) -> None:
    """Write `<split>.en` and `<split>.art` for every split, `<split>.conllu` for dev and test.

    One sentence a line, words separated by a space; line n of both files belong together. Last
    comes the manifest: until then the checksums of an older one do not fit the new files.
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
    """The trees in CoNLL-U; sentences are called `<prefix>-1`, `<prefix>-2`, …"""
    blocks = []
    for number, sentence in enumerate(sentences, start=1):
        lines = [f"# sent_id = {prefix}-{number}", f"# text = {' '.join(sentence.source)}"]
        for position, token in enumerate(sentence.tree, start=1):
            form, upos, head, deprel = token
            lines.append(f"{position}\t{form}\t_\t{upos}\t_\t_\t{head}\t{deprel}\t_\t_")
        blocks.append("\n".join(lines) + "\n\n")
    return "".join(blocks)


@cache
def rules() -> dict[str, Any]:
    """The rules in corpus.yaml."""
    text = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


@cache
def lexicon() -> Lexicon:
    """The words of the language, pseudo-words included."""
    return read_lexicon(rules())


def _stream(seed: int, split: str) -> Iterator[Sentence]:
    """Sentences of allowed length without end."""
    # A text as seed is hashed by SHA-512, so it does not change with Python's own hash seed.
    grammar = Grammar(lexicon(), rules(), Random(f"{seed} {split}"))
    speller, length = Speller(lexicon(), rules()), rules()["length"]
    while True:
        sentence = speller.sentence(grammar.derivation())
        if length["shortest"] <= len(sentence.source) <= length["longest"]:
            yield sentence
