"""Derivations of the synthetic grammar: sentences before either language orders their words."""

from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple

from headcount.data.synthetic.lexicon import Lexicon, Weighted, Word


class Adjective(NamedTuple):
    """An adjective, `strong` with the adverb of degree."""

    word: Word
    strong: bool = False


class NounPhrase(NamedTuple):
    """A noun and its dependents. A relative clause lacks its subject or its object."""

    noun: Word
    number: str
    determiner: Word | None = None
    adjectives: tuple[Adjective, ...] = ()
    modifier: "PrepositionalPhrase | None" = None
    relative: "Clause | None" = None


class PrepositionalPhrase(NamedTuple):
    """A preposition and its noun phrase."""

    preposition: Word
    noun_phrase: NounPhrase


class Clause(NamedTuple):
    """A verb and its dependents. `subject` is None where a relative clause lacks it."""

    verb: Word
    tense: str
    subject: NounPhrase | None
    object: NounPhrase | None = None
    oblique: PrepositionalPhrase | None = None
    adverb: Word | None = None
    opening_adverb: Word | None = None
    conjunction: Word | None = None
    subordinate: "Clause | None" = None


class Grammar:
    """Draws derivations. The same stream of random numbers gives the same derivations."""

    def __init__(self, lexicon: Lexicon, rules: Mapping[str, Any], random: Random) -> None:
        """`rules`: `chances` and `tense` of corpus.yaml."""
        self._lexicon = lexicon
        self._chances = rules["chances"]
        self._tenses = Weighted(rules["tense"].keys())
        self._random = random

    def derivation(self) -> Clause:
        """Return the main clause of a sentence of any length."""
        main = self._clause()
        if not self._happens("subordinate"):
            return main
        return main._replace(conjunction=self._draw("conjunctions"), subordinate=self._clause())

    def _clause(self) -> Clause:
        opening = self._perhaps("opening_adverb")
        if self._happens("pronoun"):
            pronoun = self._draw("pronouns")
            number = next(number for number, form in pronoun.forms.items() if form)
            subject = NounPhrase(pronoun, number)
        else:
            subject = self._argument("subject")
        transitive = self._happens("transitive")
        verb, tense, adverb = self._predicate(transitive)
        affected = self._argument("object") if transitive else None
        # After a relative clause of the object, a phrase would seem to belong to that clause.
        closed = affected is not None and affected.relative is not None
        oblique = None if closed else self._oblique(transitive)
        return Clause(verb, tense, subject, affected, oblique, adverb, opening)

    def _relative(self) -> Clause:
        """Return a clause with simple noun phrases, so that it has one reading."""
        lacks_object = self._happens("object_relative")
        transitive = lacks_object or self._happens("transitive")
        verb, tense, adverb = self._predicate(transitive)
        subject = self._simple("subject") if lacks_object else None
        affected = self._simple("object") if transitive and not lacks_object else None
        return Clause(verb, tense, subject, affected, self._oblique(transitive), adverb)

    def _predicate(self, transitive: bool) -> tuple[Word, str, Word | None]:
        verb = self._draw("transitive_verbs" if transitive else "intransitive_verbs")
        return verb, self._tenses.draw(self._random), self._perhaps("adverb")

    def _oblique(self, transitive: bool) -> PrepositionalPhrase | None:
        if not self._happens("oblique", "transitive" if transitive else "intransitive"):
            return None
        return PrepositionalPhrase(self._draw("verb_prepositions"), self._simple("oblique"))

    def _argument(self, place: str) -> NounPhrase:
        """Return a subject or object, which may have a modifier and a relative clause."""
        core = self._simple(place)
        if core.noun.upos != "NOUN":
            return core
        modifier = None
        if self._happens("modifier", place):
            preposition = self._draw(f"{place}_prepositions")
            modifier = PrepositionalPhrase(preposition, self._simple("modifier"))
        relative = self._relative() if self._happens("relative", place) else None
        return core._replace(modifier=modifier, relative=relative)

    def _simple(self, place: str) -> NounPhrase:
        """Return a name, or a noun with determiner and adjectives."""
        animacy = "animate" if self._happens("animate", place) else "inanimate"
        if animacy == "animate" and self._happens("name"):
            return NounPhrase(self._draw("names"), "singular")
        noun = self._draw(animacy)
        number = "plural" if self._happens("plural") else "singular"
        determiner = self._draw("determiners")
        adjectives: list[Adjective] = []
        for chance in ("adjective", "second_adjective"):
            if not self._happens(chance):
                break
            word = self._draw("adjectives")
            # The same adjective twice would say nothing new.
            if word not in (earlier.word for earlier in adjectives):
                adjectives.append(Adjective(word, self._happens("degree")))
        return NounPhrase(noun, number, determiner, tuple(adjectives))

    def _draw(self, words: str) -> Word:
        return self._lexicon[words].draw(self._random)

    def _perhaps(self, chance: str) -> Word | None:
        return self._draw(f"{chance}s") if self._happens(chance) else None

    def _happens(self, chance: str, place: str | None = None) -> bool:
        probability = self._chances[chance]
        return self._random.random() < (probability if place is None else probability[place])
