"""The source side: a derivation's words in English order, each with head and relation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headcount.data.synthetic.grammar import (
    Adjective,
    Clause,
    Derivation,
    NounPhrase,
    PrepositionalPhrase,
)
from headcount.data.synthetic.lexicon import Lexicon


class Token(NamedTuple):
    """A source word in its dependency tree; `head` counts from 1, and 0 is the root's."""

    form: str
    upos: str
    head: int
    deprel: str


@dataclass(eq=False)
class _Node:
    """A word whose position is not known yet. Two nodes are never equal."""

    form: str
    upos: str
    deprel: str
    head: "_Node | None"


class SourceSide:
    """Spells derivations out in English, as trees after Universal Dependencies."""

    def __init__(self, lexicon: Lexicon, rules: Mapping[str, Any]) -> None:
        """`rules` are those of synthetic.yaml; read are its `source_order` and `stop`."""
        self._lexicon = lexicon
        self._order = rules["source_order"]
        self._stop = rules["stop"]

    def tree(self, derivation: Derivation) -> tuple[Token, ...]:
        """The sentence's tokens in order."""
        root = _Node(_verb_form(derivation.main, None), "VERB", "root", None)
        parts = {
            "main": self._clause(derivation.main, root),
            "stop": [_Node(self._stop, "PUNCT", "punct", root)],
        }
        if derivation.conjunction and derivation.subordinate:
            form = _verb_form(derivation.subordinate, None)
            verb = _Node(form, "VERB", "advcl", root)
            parts["conjunction"] = [_Node(derivation.conjunction.form, "SCONJ", "mark", verb)]
            parts["subordinate"] = self._clause(derivation.subordinate, verb)
        return _numbered(self._arranged("sentence", parts))

    def _clause(self, clause: Clause, verb: _Node) -> list[_Node]:
        parts = {"verb": [verb]}
        if clause.opening_adverb:
            parts["opening_adverb"] = [_Node(clause.opening_adverb.form, "ADV", "advmod", verb)]
        if clause.subject:
            parts["subject"] = self._noun_phrase(clause.subject, "nsubj", verb)
        if clause.tense == "future":
            parts["auxiliary"] = [_Node(self._lexicon.auxiliary, "AUX", "aux", verb)]
        if clause.adverb:
            parts["adverb"] = [_Node(clause.adverb.form, "ADV", "advmod", verb)]
        if clause.object:
            parts["object"] = self._noun_phrase(clause.object, "obj", verb)
        if clause.oblique:
            parts["oblique"] = self._prepositional_phrase(clause.oblique, "obl", verb)
        return self._arranged("clause", parts)

    def _noun_phrase(self, phrase: NounPhrase, deprel: str, head: _Node) -> list[_Node]:
        noun = _Node(phrase.noun.forms[phrase.number], phrase.noun.upos, deprel, head)
        parts = {"noun": [noun], "adjectives": []}
        if phrase.determiner and phrase.determiner.forms[phrase.number]:
            form = phrase.determiner.forms[phrase.number]
            parts["determiner"] = [_Node(form, "DET", "det", noun)]
        for adjective in phrase.adjectives:
            parts["adjectives"] += self._adjective(adjective, noun)
        if phrase.modifier:
            parts["modifier"] = self._prepositional_phrase(phrase.modifier, "nmod", noun)
        if phrase.relative:
            parts["relative"] = self._relative(phrase.relative, phrase, noun)
        return self._arranged("noun_phrase", parts)

    def _adjective(self, adjective: Adjective, noun: _Node) -> list[_Node]:
        node = _Node(adjective.word.form, "ADJ", "amod", noun)
        parts = {"adjective": [node]}
        if adjective.strong:
            parts["degree"] = [_Node(self._lexicon.degree.form, "ADV", "advmod", node)]
        return self._arranged("adjective", parts)

    def _prepositional_phrase(
        self, phrase: PrepositionalPhrase, deprel: str, head: _Node
    ) -> list[_Node]:
        inner = self._noun_phrase(phrase.noun_phrase, deprel, head)
        noun = next(node for node in inner if node.head is head)
        case = _Node(phrase.preposition.form, "ADP", "case", noun)
        return self._arranged("prepositional_phrase", {"preposition": [case], "noun_phrase": inner})

    def _relative(self, clause: Clause, antecedent: NounPhrase, noun: _Node) -> list[_Node]:
        verb = _Node(_verb_form(clause, antecedent), "VERB", "acl:relcl", noun)
        missing = "obj" if clause.subject else "nsubj"
        relativiser = _Node(self._lexicon.relativiser.form, "PRON", missing, verb)
        return self._arranged(
            "relative", {"relativiser": [relativiser], "clause": self._clause(clause, verb)}
        )

    def _arranged(self, phrase: str, parts: Mapping[str, list[_Node]]) -> list[_Node]:
        return [node for name in self._order[phrase] for node in parts.get(name, ())]


def _verb_form(clause: Clause, antecedent: NounPhrase | None) -> str:
    """The verb as its tense and subject ask; a relative clause may take that from outside."""
    subject = clause.subject or antecedent
    if clause.tense == "past":
        return clause.verb.past
    singular = subject is not None and subject.number == "singular"
    return clause.verb.third if clause.tense == "present" and singular else clause.verb.base


def _numbered(nodes: Sequence[_Node]) -> tuple[Token, ...]:
    positions = {id(node): position for position, node in enumerate(nodes, start=1)}
    return tuple(
        Token(node.form, node.upos, positions[id(node.head)] if node.head else 0, node.deprel)
        for node in nodes
    )
