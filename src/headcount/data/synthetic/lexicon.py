"""The words of the synthetic grammar, read from its rules, and how they are drawn."""

from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, cycle, islice
from random import Random
from typing import Any, Generic, TypeVar

from headcount.base.errors import UserError

Item = TypeVar("Item")


@dataclass(frozen=True)
class Stem:
    """A target stem that may depend on context."""

    by_context: Mapping[str, str]

    def choose(self, *context: str) -> str:
        """The stem of the first context listed, otherwise that of `else`."""
        return next(self.by_context[key] for key in (*context, "else") if key in self.by_context)


@dataclass(frozen=True)
class Noun:
    """A noun, name or pronoun. `forms` has the numbers it can stand in."""

    forms: Mapping[str, str]
    gender: str
    animacy: str
    stem: Stem
    upos: str


@dataclass(frozen=True)
class Verb:
    """A verb. `kind` is the class by which the words it governs choose their stems."""

    base: str
    third: str
    past: str
    kind: str
    stem: Stem


@dataclass(frozen=True)
class Determiner:
    """A determiner; an empty form or stem leaves no word."""

    forms: Mapping[str, str]
    stem: str


@dataclass(frozen=True)
class Preposition:
    """A preposition, a postposition in the target, and the case it asks for."""

    form: str
    case: str
    stem: Stem


@dataclass(frozen=True)
class Word:
    """A word that has one form on each side, before any agreement."""

    form: str
    stem: str


class Weighted(Generic[Item]):
    """Items to draw from, each with its weight."""

    def __init__(self, items: Sequence[Item], weights: Iterable[float] | None = None) -> None:
        """Without weights all items are equally likely."""
        self.items = tuple(items)
        self._bounds = tuple(accumulate(weights or [1.0] * len(self.items)))

    def draw(self, random: Random) -> Item:
        """One item. Uses `random.random` alone, whose sequence Python promises to keep."""
        point = random.random() * self._bounds[-1]
        return self.items[bisect(self._bounds, point, hi=len(self.items) - 1)]


class Lexicon:
    """All words of the grammar, grouped by the places where they are drawn."""

    def __init__(self, rules: Mapping[str, Any]) -> None:
        """Raises UserError if one source form belongs to two words."""
        listed = [_noun(*row) for row in rules["nouns"]]
        adjectives = [Word(*row) for row in rules["adjectives"]]
        taken = {stem for noun in listed for stem in noun.stem.by_context.values()}
        roots = _roots(rules["roots"], taken | {word.stem for word in adjectives})
        nouns = listed + _rare_nouns(rules["rare_nouns"], roots)
        zipf = [rank ** -rules["zipf"] for rank in range(1, len(nouns) + 1)]
        self.nouns = {kind: _of_kind(kind, nouns, zipf) for kind in ("animate", "inanimate")}
        names = _names(rules["names"], roots)
        self.names = Weighted(names, zipf[: len(names)])
        self.pronouns = Weighted([_pronoun(*row) for row in rules["pronouns"]])
        self.transitive = Weighted([_verb(*row) for row in rules["transitive_verbs"]])
        self.intransitive = Weighted([_verb(*row) for row in rules["intransitive_verbs"]])
        self.adjectives = Weighted(adjectives)
        self.adverbs = Weighted([Word(*row) for row in rules["adverbs"]])
        self.opening_adverbs = Weighted([Word(*row) for row in rules["opening_adverbs"]])
        self.conjunctions = Weighted([Word(*row) for row in rules["conjunctions"]])
        self.determiners = _determiners(rules["determiners"])
        self.prepositions = {
            place: Weighted([Preposition(form, case, _stem(stem)) for form, case, stem in rows])
            for place, rows in rules["prepositions"].items()
        }
        self.degree = Word(*rules["degree"])
        self.relativiser = Word(*rules["relativiser"])
        self.auxiliary: str = rules["auxiliary"]
        _check_forms(self._forms())

    def _forms(self) -> list[set[str]]:
        """The source forms of each word."""
        nouns = [noun for group in self.nouns.values() for noun in group.items]
        nominals = [*nouns, *self.names.items, *self.pronouns.items]
        verbs = [*self.transitive.items, *self.intransitive.items]
        plain = [self.adjectives, self.adverbs, self.opening_adverbs, self.conjunctions]
        words = [word for group in plain for word in group.items]
        prepositions = {word.form for group in self.prepositions.values() for word in group.items}
        return [
            *(set(noun.forms.values()) for noun in nominals),
            *({verb.base, verb.third, verb.past} for verb in verbs),
            *({word.form} for word in [*words, self.degree, self.relativiser]),
            *(set(determiner.forms.values()) - {""} for determiner in self.determiners.items),
            *({form} for form in [*sorted(prepositions), self.auxiliary]),
        ]


def _check_forms(words: Iterable[set[str]]) -> None:
    seen: set[str] = set()
    for forms in words:
        if seen & forms:
            twice = ", ".join(sorted(seen & forms))
            raise UserError(f"synthetic.yaml: two words share the source form {twice}; rename one")
        seen |= forms


def _stem(rule: str | Mapping[str, str]) -> Stem:
    return Stem({"else": rule} if isinstance(rule, str) else rule)


def _noun(singular: str, plural: str, gender: str, animacy: str, stem: Any) -> Noun:
    forms = {"singular": singular, "plural": plural}
    return Noun(forms, gender, animacy, _stem(stem), "NOUN")


def _pronoun(form: str, number: str, gender: str) -> Noun:
    return Noun({number: form}, gender, "animate", _stem(""), "PRON")


def _verb(base: str, third: str, past: str, kind: str, stem: Any) -> Verb:
    return Verb(base, third, past, kind, _stem(stem))


def _determiners(rows: Iterable[tuple[str, str, str, float]]) -> Weighted[Determiner]:
    words, weights = [], []
    for singular, plural, stem, weight in rows:
        words.append(Determiner({"singular": singular, "plural": plural}, stem))
        weights.append(weight)
    return Weighted(words, weights)


def _of_kind(animacy: str, nouns: Sequence[Noun], weights: Sequence[float]) -> Weighted[Noun]:
    pairs = [pair for pair in zip(nouns, weights, strict=True) if pair[0].animacy == animacy]
    return Weighted([noun for noun, _ in pairs], [weight for _, weight in pairs])


def _roots(rules: Mapping[str, Any], taken: set[str]) -> Iterator[str]:
    """Pronounceable words without end, each new; `taken` holds those that exist already."""
    random = Random(rules["seed"])
    consonants, vowels = Weighted(rules["consonants"]), Weighted(rules["vowels"])
    for syllables in cycle(rules["syllables"]):
        root = ""
        while not root or root in taken:
            root = "".join(consonants.draw(random) + vowels.draw(random) for _ in range(syllables))
        taken = taken | {root}
        yield root


def _rare_nouns(rules: Mapping[str, Any], roots: Iterator[str]) -> list[Noun]:
    nouns = []
    for index, root in enumerate(islice(roots, rules["count"])):
        ending, gender, animacy = rules["endings"][index % len(rules["endings"])]
        form = root + ending
        nouns.append(_noun(form, form + rules["plural"], gender, animacy, root))
    return nouns


def _names(rules: Mapping[str, Any], roots: Iterator[str]) -> list[Noun]:
    names = []
    for index, root in enumerate(islice(roots, rules["count"])):
        ending, gender, animacy = rules["endings"][index % len(rules["endings"])]
        form = root + ending
        stem = _stem(form + rules["title"])
        names.append(Noun({"singular": form}, gender, animacy, stem, "PROPN"))
    return names
