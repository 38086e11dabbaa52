"""Words and derivations of the synthetic grammar, before either language orders the words."""

from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, cycle, islice
from random import Random
from typing import Any, NamedTuple


@dataclass(frozen=True, eq=False)
class Word:
    """A word of both languages. Two words are never equal."""

    upos: str
    forms: Mapping[str, str]
    """In the source: by number or tense, or `form` alone. An empty form leaves no word."""
    stems: Mapping[str, str]
    """In the target: by context, or `else` alone."""
    gender: str = ""
    animacy: str = ""
    kind: str = ""
    """Class of a verb, by which the words that it governs choose their stems."""
    case: str = ""
    """Case that a preposition governs."""
    synonym: str = ""
    """Another target stem of the same meaning."""

    def stem(self, *context: str) -> str:
        """Return the stem of the first context that has one, otherwise the stem of `else`."""
        return next(self.stems[key] for key in (*context, "else") if key in self.stems)


class Weighted:
    """Items to draw from."""

    def __init__(self, items: Iterable[Any] | Mapping[Any, float]) -> None:
        """Weights come from a mapping. Without one all items are equally likely."""
        weights = items if isinstance(items, Mapping) else dict.fromkeys(items, 1.0)
        self.items = tuple(weights)
        self._bounds = tuple(accumulate(weights.values()))

    def draw(self, random: Random) -> Any:
        """Return one item. Uses only `random.random`, whose sequence Python promises to keep."""
        point = random.random() * self._bounds[-1]
        return self.items[bisect(self._bounds, point, hi=len(self.items) - 1)]


Lexicon = dict[str, Weighted]
"""All words, by the lists of the rules; nouns by animacy (`animate`, `inanimate`); and `names`."""


def read_lexicon(rules: Mapping[str, Any]) -> Lexicon:
    """Return the words that rules list and the words that they coin."""
    sizes = rules["sizes"]
    listed = {
        name: _words(rules[name][: sizes.get(name)], *columns)
        for name, columns in rules["columns"].items()
    }
    known = [*listed["nouns"], *listed["adjectives"]]
    roots = _roots(rules["roots"], {stem for word in known for stem in word.stems.values()})
    nouns = [
        *listed.pop("nouns"),
        *_coined("NOUN", rules["rare_nouns"], sizes["rare_nouns"], roots),
    ]
    names = _coined("PROPN", rules["names"], sizes["names"], roots)
    nouns = _with_synonyms(nouns, roots)
    for name in rules["synonyms"]:
        words = _with_synonyms(listed[name], roots)
        listed[name] = dict(zip(words, listed[name].values(), strict=True))
    zipf = [rank ** -rules["zipf"] for rank in range(1, len(nouns) + 1)]
    ranked = list(zip(nouns, zipf, strict=True))
    for animacy in ("animate", "inanimate"):
        listed[animacy] = {noun: chance for noun, chance in ranked if noun.animacy == animacy}
    listed["names"] = dict(zip(names, zipf, strict=False))
    return {name: Weighted(words) for name, words in listed.items()}


def _words(rows: Iterable[Sequence[Any]], upos: str, *columns: str) -> dict[Word, float]:
    """Return words with weights. A column that is neither stem, weight nor trait is a form."""
    words = {}
    for row in rows:
        cells = dict(zip(columns, row, strict=True))
        stem, weight = cells.pop("stem"), cells.pop("weight", 1.0)
        traits = {name: cells.pop(name, "") for name in ("gender", "animacy", "kind", "case")}
        stems = {"else": stem} if isinstance(stem, str) else stem
        words[Word(upos, cells, stems, **traits)] = weight
    return words


def _roots(rules: Mapping[str, Any], taken: set[str]) -> Iterator[str]:
    """Yield pronounceable words without end, none twice and none of `taken`."""
    random = Random(rules["seed"])
    consonants, vowels = Weighted(rules["consonants"]), Weighted(rules["vowels"])
    for syllables in cycle(rules["syllables"]):
        root = ""
        while not root or root in taken:
            root = "".join(consonants.draw(random) + vowels.draw(random) for _ in range(syllables))
        taken.add(root)
        yield root


def _coined(upos: str, rules: Mapping[str, Any], count: int, roots: Iterator[str]) -> list[Word]:
    """Return `count` words of roots and endings. Those with a plural keep the root alone."""
    words = []
    endings = islice(cycle(rules["endings"]), count)
    for (ending, gender, animacy), root in zip(endings, roots, strict=False):
        forms, stem = {"singular": root + ending}, root
        if "plural" in rules:
            forms["plural"] = root + ending + rules["plural"]
        else:
            stem += ending + rules["title"]
        words.append(Word(upos, forms, {"else": stem}, gender, animacy))
    return words


def _with_synonyms(words: Iterable[Word], roots: Iterator[str]) -> list[Word]:
    """Return words with another root. A word whose stem depends on its context has none."""
    plain = {"else"}
    return [replace(w, synonym=next(roots)) if {*w.stems} == plain else w for w in words]


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
