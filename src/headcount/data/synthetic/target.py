"""The target side: a derivation's words in the artificial language."""

from collections.abc import Mapping
from typing import Any

from headcount.data.synthetic.grammar import (
    Adjective,
    Clause,
    Derivation,
    NounPhrase,
    PrepositionalPhrase,
)
from headcount.data.synthetic.lexicon import Lexicon


class TargetSide:
    """Spells derivations out in the artificial language."""

    def __init__(self, lexicon: Lexicon, rules: Mapping[str, Any]) -> None:
        """`rules` are those of synthetic.yaml; read are suffixes, prefixes, `target_order`."""
        self._lexicon = lexicon
        self._rules = rules
        self._order = rules["target_order"]

    def words(self, derivation: Derivation) -> tuple[str, ...]:
        """The sentence's words in order."""
        parts = {"main": self._clause(derivation.main, None), "stop": [self._rules["stop"]]}
        if derivation.conjunction and derivation.subordinate:
            parts["conjunction"] = [derivation.conjunction.stem]
            parts["subordinate"] = self._clause(derivation.subordinate, None)
        return tuple(self._arranged("sentence", parts))

    def _clause(self, clause: Clause, antecedent: NounPhrase | None) -> list[str]:
        """`antecedent` stands for the subject or object that a relative clause lacks."""
        kind = clause.verb.kind
        parts = {"verb": [self._verb(clause, antecedent)]}
        if clause.opening_adverb:
            parts["opening_adverb"] = [clause.opening_adverb.stem]
        if clause.subject:
            parts["subject"] = self._noun_phrase(clause.subject, "nominative", kind)
        if clause.adverb:
            parts["adverb"] = [clause.adverb.stem]
        if clause.object:
            parts["object"] = self._noun_phrase(clause.object, "accusative", kind)
        if clause.oblique:
            parts["oblique"] = self._prepositional_phrase(clause.oblique, kind)
        return self._arranged("clause", parts)

    def _verb(self, clause: Clause, antecedent: NounPhrase | None) -> str:
        subject, affected = clause.subject or antecedent, clause.object or antecedent
        context = (affected.noun.animacy, affected.number) if affected else ()
        stem = clause.verb.stem.choose(*context)
        rules = self._rules
        gender = rules["agreement_gender"][subject.noun.gender]
        return rules["tense"][clause.tense] + stem + gender + self._number(subject)

    def _noun_phrase(self, phrase: NounPhrase, case: str, governor: str) -> list[str]:
        """`governor` is the class of verb the noun depends on, or 'noun'."""
        parts: dict[str, list[str]] = {"noun": self._noun(phrase, case, governor)}
        suffix = self._agreement(phrase, case)
        if phrase.determiner and phrase.determiner.stem:
            parts["determiner"] = [phrase.determiner.stem + suffix]
        parts["adjectives"] = [
            word for adjective in phrase.adjectives for word in self._adjective(adjective, suffix)
        ]
        if phrase.modifier:
            parts["modifier"] = self._prepositional_phrase(phrase.modifier, "noun")
        if phrase.relative:
            parts["relative"] = self._relative(phrase.relative, phrase)
        return self._arranged("noun_phrase", parts)

    def _noun(self, phrase: NounPhrase, case: str, governor: str) -> list[str]:
        stem = phrase.noun.stem.choose(governor)
        number = self._rules["noun_number"][phrase.number]
        return [stem + number + self._rules["noun_case"][case]] if stem else []

    def _adjective(self, adjective: Adjective, suffix: str) -> list[str]:
        parts = {"adjective": [adjective.word.stem + suffix]}
        if adjective.strong:
            parts["degree"] = [self._lexicon.degree.stem]
        return self._arranged("adjective", parts)

    def _prepositional_phrase(self, phrase: PrepositionalPhrase, governor: str) -> list[str]:
        preposition = phrase.preposition
        stem = preposition.stem.choose(governor)
        return self._arranged(
            "prepositional_phrase",
            {
                "preposition": [stem] if stem else [],
                "noun_phrase": self._noun_phrase(phrase.noun_phrase, preposition.case, governor),
            },
        )

    def _relative(self, clause: Clause, antecedent: NounPhrase) -> list[str]:
        parts = {
            "relativiser": [self._lexicon.relativiser.stem],
            "clause": self._clause(clause, antecedent),
        }
        return self._arranged("relative", parts)

    def _agreement(self, phrase: NounPhrase, case: str) -> str:
        rules = self._rules
        gender = rules["agreement_gender"][phrase.noun.gender]
        return rules["agreement_case"][case] + gender + self._number(phrase)

    def _number(self, phrase: NounPhrase) -> str:
        return self._rules["agreement_number"][phrase.number]

    def _arranged(self, phrase: str, parts: Mapping[str, list[str]]) -> list[str]:
        return [word for name in self._order[phrase] for word in parts.get(name, ())]
