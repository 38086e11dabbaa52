"""The embedded corpus: English-like sentences, their translations and their dependency trees.

The rules stand in corpus.yaml; docs/reference/synthetic.md describes the language.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import yaml

from headcount.base.files import write_text
from headcount.base.settings.data import SyntheticSettings
from headcount.data.lines import write_lines
from headcount.data.manifest import write_manifest
from headcount.data.synthetic.grammar import (
    Adjective,
    Clause,
    Grammar,
    Lexicon,
    NounPhrase,
    PrepositionalPhrase,
    Word,
    read_lexicon,
)
from headcount.data.trees import conllu_text


class Token(NamedTuple):
    """A source word in its dependency tree. `head` counts from 1. The root has 0."""

    form: str
    upos: str
    head: int
    deprel: str


class Sentence(NamedTuple):
    """A source sentence, its translation, its tree with a token for each source word, and links.

    `links`: places of words that translate each other, source first, counted from 0.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    tree: tuple[Token, ...]
    links: tuple[tuple[int, int], ...]


@dataclass(eq=False, slots=True)
class _Node:
    """A word whose position is not known yet. Two nodes are never equal."""

    word: Word
    form: str  # in the source; an empty one leaves no word there
    translation: str  # in the target; an empty one leaves no word there
    deprel: str
    head: "_Node | None"

    @property
    def governor(self) -> str:
        """Context in which its dependents choose their stems."""
        return self.word.kind or "noun"


_Parts = dict[str, Sequence["_Node | _Phrase"]]


class _Phrase(NamedTuple):
    """Parts by their names in the orders of this kind of phrase."""

    kind: str
    parts: _Parts


class Realiser:
    """Writes derivations in English, with trees after Universal Dependencies, and in a target."""

    def __init__(
        self,
        lexicon: Lexicon,
        rules: Mapping[str, Any],
        happens: Callable[[], bool] = bool,
    ) -> None:
        """`rules`: suffixes, prefixes and orders of corpus.yaml.

        `happens` decides for a target word whether its synonym stands there, and for a phrase
        whether it has its other order.
        """
        self._lexicon = lexicon
        self._rules = rules
        self._happens = happens
        self._letters = str.maketrans(*rules["letters"])

    def sentence(self, main: Clause) -> Sentence:
        """Return the sentence of a main clause in both languages."""
        root = self._verb(main, "root", None, None)
        parts: _Parts = {"main": [self._clause(main, root)]}
        parts["stop"] = [self._only("stop", "punct", root)]
        if main.conjunction and main.subordinate:
            verb = self._verb(main.subordinate, "advcl", root, None)
            parts["conjunction"] = [self._node(main.conjunction, "mark", verb)]
            parts["subordinate"] = [self._clause(main.subordinate, verb)]
        whole = _Phrase("sentence", parts)
        source = [n for n in self._arranged(whole, "source_order") if n.form]
        target = [n for n in self._arranged(whole, "target_order") if n.translation]
        places = {node: place for place, node in enumerate(source, start=1)} | {None: 0}
        return Sentence(
            tuple(node.form for node in source),
            tuple(node.translation for node in target),
            tuple(Token(n.form, n.word.upos, places[n.head], n.deprel) for n in source),
            tuple((i, target.index(n)) for i, n in enumerate(source) if n.translation),
        )

    def _verb(
        self, clause: Clause, deprel: str, head: _Node | None, antecedent: NounPhrase | None
    ) -> _Node:
        """Return a verb. `antecedent` is the argument that a relative clause lacks."""
        subject, affected = clause.subject or antecedent, clause.object or antecedent
        form = "past" if clause.tense == "past" else "base"
        if clause.tense == "present" and subject.number == "singular":
            form = "third"
        context = (affected.noun.animacy, affected.number) if affected else ()
        stem = self._rules["tense"][clause.tense] + self._stem(clause.verb, *context)
        translation = stem + self._agreement(subject)
        return _Node(clause.verb, clause.verb.forms[form], translation, deprel, head)

    def _clause(self, clause: Clause, verb: _Node) -> _Phrase:
        parts: _Parts = {"verb": [verb]}
        for name in ("opening_adverb", "adverb"):
            if adverb := getattr(clause, name):
                parts[name] = [self._node(adverb, "advmod", verb)]
        if clause.subject:
            case = self._rules["subject_case"][clause.tense]
            parts["subject"] = [self._noun_phrase(clause.subject, "nsubj", verb, case)]
        if clause.tense == "future":
            parts["auxiliary"] = [self._only("auxiliary", "aux", verb)]
        if clause.object:
            parts["object"] = [self._noun_phrase(clause.object, "obj", verb, "accusative")]
        if clause.oblique:
            parts["oblique"] = [self._prepositional_phrase(clause.oblique, "obl", verb)]
        return _Phrase("clause", parts)

    def _noun_phrase(self, phrase: NounPhrase, deprel: str, head: _Node, case: str) -> _Phrase:
        number, rules = phrase.number, self._rules
        ending = rules["noun_number"][number] + rules["noun_case"][case]
        noun = self._node(phrase.noun, deprel, head, number, ending, head.governor)
        suffix = rules["agreement_case"][case] + self._agreement(phrase)
        parts: _Parts = {"noun": [noun]}
        if phrase.determiner:
            parts["determiner"] = [self._node(phrase.determiner, "det", noun, number, suffix)]
        parts["adjectives"] = [self._adjective(word, noun, suffix) for word in phrase.adjectives]
        if phrase.modifier:
            parts["modifier"] = [self._prepositional_phrase(phrase.modifier, "nmod", noun)]
        if phrase.relative:
            verb = self._verb(phrase.relative, "acl:relcl", noun, phrase)
            missing = "obj" if phrase.relative.subject else "nsubj"
            relative: _Parts = {"relativiser": [self._only("relativiser", missing, verb)]}
            relative["clause"] = [self._clause(phrase.relative, verb)]
            parts["relative"] = [_Phrase("relative", relative)]
        return _Phrase("noun_phrase", parts)

    def _adjective(self, adjective: Adjective, noun: _Node, suffix: str) -> _Phrase:
        node = self._node(adjective.word, "amod", noun, suffix=suffix)
        degree = [self._only("degree", "advmod", node)] if adjective.strong else []
        return _Phrase("adjective", {"adjective": [node], "degree": degree})

    def _prepositional_phrase(
        self, phrase: PrepositionalPhrase, deprel: str, head: _Node
    ) -> _Phrase:
        inner = self._noun_phrase(phrase.noun_phrase, deprel, head, phrase.preposition.case)
        noun = inner.parts["noun"][0]
        case = self._node(phrase.preposition, "case", noun, governor=head.governor)
        return _Phrase("prepositional_phrase", {"preposition": [case], "noun_phrase": [inner]})

    def _only(self, name: str, deprel: str, head: _Node) -> _Node:
        """Return the word of a list of one word."""
        return self._node(self._lexicon[name].items[0], deprel, head)

    def _node(
        self,
        word: Word,
        deprel: str,
        head: _Node,
        form: str = "form",
        suffix: str = "",
        governor: str = "",
    ) -> _Node:
        """Return a word with a suffix, unless its stem is empty. `governor` chooses the stem."""
        stem = self._stem(word, governor)
        return _Node(word, word.forms[form], stem and stem + suffix, deprel, head)

    def _stem(self, word: Word, *context: str) -> str:
        drawn = word.synonym if word.synonym and self._happens() else word.stem(*context)
        return drawn.translate(self._letters)

    def _arranged(self, phrase: _Phrase, order: str) -> list[_Node]:
        names, nodes = self._rules[order][phrase.kind], []
        if order == "target_order" and self._happens():
            names = self._rules["varied_order"].get(phrase.kind, names)
        for part in (part for name in names for part in phrase.parts.get(name, ())):
            nodes += [part] if isinstance(part, _Node) else self._arranged(part, order)
        return nodes

    def _agreement(self, phrase: NounPhrase) -> str:
        gender = self._rules["agreement_gender"][phrase.noun.gender]
        return gender + self._rules["agreement_number"][phrase.number]


SOURCE, TARGET = "en", "art"


def generate(
    seed: int,
    count: int,
    split: str = "train",
    without: Set[tuple[str, ...]] = frozenset(),
    variation: float = 0.0,
    variety: str = "far",
    target: str = TARGET,
) -> list[Sentence]:
    """Return `count` sentences of a split in English and one target language.

    None has one of the source sentences `without`. All targets have the same source sentences.

    Each split has random streams, so its first sentences do not depend on `count`, nor source
    sentences on the `variation` of the target.
    """
    # Random hashes a text as seed by SHA-512, whatever Python's hash seed.
    words, own = lexicon(variety), rules(variety, target)
    grammar = Grammar(words, own, Random(f"{seed} {split}"))
    varied = Random(f"{seed} {split} variation")
    realiser = Realiser(words, own, lambda: varied.random() < variation)
    length = own["length"]
    sentences: list[Sentence] = []
    while len(sentences) < count:
        sentence = realiser.sentence(grammar.derivation())
        fits = length["shortest"] <= len(sentence.source) <= length["longest"]
        if fits and sentence.source not in without:
            sentences.append(sentence)
    return sentences


def generate_splits(
    seed: int,
    train_pairs: int,
    dev_pairs: int,
    test_pairs: int,
    variation: float = 0.0,
    variety: str = "far",
    target: str = TARGET,
) -> dict[str, list[Sentence]]:
    """Return all splits, no source sentence in two of them. Train is drawn last."""
    splits: dict[str, list[Sentence]] = {}
    held_out: set[tuple[str, ...]] = set()
    for name, count in (("test", test_pairs), ("dev", dev_pairs), ("train", train_pairs)):
        splits[name] = generate(seed, count, name, held_out, variation, variety, target)
        held_out |= {sentence.source for sentence in splits[name]}
    return {name: splits[name] for name in ("train", "dev", "test")}


def write_corpus(folder: Path, corpus: str, size: SyntheticSettings) -> None:
    """Write `<split>.{en,art,links}`, `<split>.conllu` of dev and test and, last, the manifest.

    A second target language has the files `<split>.{qaa,qaa.links}`.
    """
    texts, trees, links = {}, {}, {}
    for target in size.targets:
        splits = generate_splits(**size.model_dump(exclude={"second_target"}), target=target)
        for name, sentences in splits.items():
            for side, place in ((SOURCE, "source"), (target, "target")):
                texts.setdefault(name, {})[side] = {"file": f"{name}.{side}"}
                lines = (" ".join(getattr(s, place)) for s in sentences)
                write_lines(folder / f"{name}.{side}", lines)
            file = f"{name}.links" if target == TARGET else f"{name}.{target}.links"
            links.setdefault(name, {})[f"{SOURCE}-{target}"] = {"file": file}
            write_lines(folder / file, (pharaoh(s.links) for s in sentences))
    for name in ("dev", "test"):
        trees[name] = {SOURCE: {"file": f"{name}.conllu"}}
        write_text(folder / f"{name}.conllu", conllu(splits[name], name))
    about = {"corpus": corpus, "pretokenised": True, "links": links}
    write_manifest(folder, about, texts, trees)


def pharaoh(links: Sequence[tuple[int, int]]) -> str:
    """Return the links of a sentence in Pharaoh's format, as in `0-2 1-0`."""
    return " ".join(f"{source}-{target}" for source, target in links)


def conllu(sentences: Sequence[Sentence], prefix: str) -> str:
    """Return the trees in CoNLL-U. Sentences are called `<prefix>-1`, `<prefix>-2`, …"""
    return "".join(
        conllu_text(f"{prefix}-{number}", " ".join(sentence.source), sentence.tree)
        for number, sentence in enumerate(sentences, start=1)
    )


@cache
def rules(variety: str = "far", target: str = TARGET) -> dict[str, Any]:
    """Return the rules in corpus.yaml of a variety of a target language."""
    own = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    near, second = own.pop("near"), own.pop("second")
    if variety == "near":
        own |= near | {"chances": own["chances"] | near["chances"]}
    return own if target == TARGET else own | second


@cache
def lexicon(variety: str = "far") -> Lexicon:
    """Return the words of a variety of the language, also pseudo-words."""
    return read_lexicon(rules(variety))
