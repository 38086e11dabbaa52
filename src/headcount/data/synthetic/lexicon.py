"""The words of the synthetic grammar, read from its rules, and how they are drawn."""

from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, cycle, islice
from random import Random
from typing import Any, Generic, TypeVar

from headcount.base.errors import UserError

Item = TypeVar("Item")

_PLAIN, _VERB = "form stem", "base third past kind stem"


@dataclass(frozen=True, eq=False)
class Word:
    """A word of both languages, and what others must know of it. Two words are never equal."""

    upos: str
    forms: Mapping[str, str]
    """In the source: by number or tense, or `form` alone. An empty one leaves no word."""
    stems: Mapping[str, str]
    """In the target: by context, or `else` alone."""
    gender: str = ""
    animacy: str = ""
    kind: str = ""
    """Class of a verb by which the words it governs choose their stems."""
    case: str = ""
    """That a preposition, in the target a postposition, asks for."""

    def stem(self, *context: str) -> str:
        """The stem of the first context that has one, otherwise that of `else`."""
        return next(self.stems[key] for key in (*context, "else") if key in self.stems)


class Weighted(Generic[Item]):
    """Items to draw from."""

    def __init__(self, items: Iterable[Item] | Mapping[Item, float]) -> None:
        """A mapping gives each item its weight; without one all are equally likely."""
        weights = items if isinstance(items, Mapping) else dict.fromkeys(items, 1.0)
        self.items = tuple(weights)
        self._bounds = tuple(accumulate(weights.values()))

    def draw(self, random: Random) -> Item:
        """One item. Uses `random.random` alone, whose sequence Python promises to keep."""
        point = random.random() * self._bounds[-1]
        return self.items[bisect(self._bounds, point, hi=len(self.items) - 1)]


class Lexicon:
    """All words of the grammar, grouped by the places where they are drawn."""

    def __init__(self, rules: Mapping[str, Any]) -> None:
        """Raises UserError if one source form belongs to two words."""

        def listed(name: str, upos: str, columns: str = _PLAIN) -> list[Word]:
            return [_word(upos, columns, row) for row in rules[name]]

        nouns = listed("nouns", "NOUN", "singular plural gender animacy stem")
        adjectives = listed("adjectives", "ADJ")
        taken = {stem for word in (*nouns, *adjectives) for stem in word.stems.values()}
        roots = _roots(rules["roots"], taken)
        nouns += _coined("NOUN", rules["rare_nouns"], roots)
        names = _coined("PROPN", rules["names"], roots)
        zipf = [rank ** -rules["zipf"] for rank in range(1, len(nouns) + 1)]
        ranked = list(zip(nouns, zipf, strict=True))
        self.nouns = {
            kind: Weighted({noun: weight for noun, weight in ranked if noun.animacy == kind})
            for kind in ("animate", "inanimate")
        }
        self.names = Weighted(dict(zip(names, zipf, strict=False)))
        self.pronouns = Weighted(
            Word("PRON", {number: form}, {"else": ""}, gender, "animate")
            for form, number, gender in rules["pronouns"]
        )
        self.transitive = Weighted(listed("transitive_verbs", "VERB", _VERB))
        self.intransitive = Weighted(listed("intransitive_verbs", "VERB", _VERB))
        self.adjectives = Weighted(adjectives)
        self.adverbs = Weighted(listed("adverbs", "ADV"))
        self.opening_adverbs = Weighted(listed("opening_adverbs", "ADV"))
        self.conjunctions = Weighted(listed("conjunctions", "SCONJ"))
        determiners = listed("determiners", "DET", "singular plural stem")
        weights = [row[-1] for row in rules["determiners"]]
        self.determiners = Weighted(dict(zip(determiners, weights, strict=True)))
        self.prepositions = {
            place: Weighted(_word("ADP", "form case stem", row) for row in rows)
            for place, rows in rules["prepositions"].items()
        }
        self.degree = _word("ADV", _PLAIN, rules["degree"])
        self.relativiser = _word("PRON", _PLAIN, rules["relativiser"])
        self.auxiliary = _word("AUX", _PLAIN, (rules["auxiliary"], ""))
        self.stop = _word("PUNCT", _PLAIN, (rules["stop"], rules["stop"]))
        self._check_forms()

    def _check_forms(self) -> None:
        groups = [*self.nouns.values(), self.names, self.pronouns, self.determiners]
        groups += [self.transitive, self.intransitive, self.adjectives, self.adverbs]
        groups += [self.opening_adverbs, self.conjunctions]
        words = [word for group in groups for word in group.items]
        words += [self.degree, self.relativiser, self.auxiliary, self.stop]
        # A preposition may be drawn in several places.
        places = self.prepositions.values()
        words += {word.forms["form"]: word for group in places for word in group.items}.values()
        owners: dict[str, Word] = {}
        for word, form in ((each, form) for each in words for form in each.forms.values()):
            if form and owners.setdefault(form, word) is not word:
                raise UserError(
                    f"synthetic.yaml: two words share the source form {form}; rename one"
                )


def _word(upos: str, columns: str, row: Sequence[Any]) -> Word:
    """The word in a row of the rules: its stem, its traits, and, by what they are of, its forms."""
    cells = dict(zip(columns.split(), row, strict=False))  # a weight may follow
    stem = cells.pop("stem")
    traits = {name: cells.pop(name, "") for name in ("gender", "animacy", "kind", "case")}
    return Word(upos, cells, {"else": stem} if isinstance(stem, str) else stem, **traits)


def _roots(rules: Mapping[str, Any], taken: set[str]) -> Iterator[str]:
    """Pronounceable words without end, each new; `taken` holds those that exist already."""
    random = Random(rules["seed"])
    consonants, vowels = Weighted(rules["consonants"]), Weighted(rules["vowels"])
    for syllables in cycle(rules["syllables"]):
        root = ""
        while not root or root in taken:
            root = "".join(consonants.draw(random) + vowels.draw(random) for _ in range(syllables))
        taken.add(root)
        yield root


def _coined(upos: str, rules: Mapping[str, Any], roots: Iterator[str]) -> list[Word]:
    """Words of roots and endings. Those that have a plural keep the root alone in the target."""
    words = []
    endings = cycle(rules["endings"])
    for root, (ending, gender, animacy) in zip(
        islice(roots, rules["count"]), endings, strict=False
    ):
        forms, stem = {"singular": root + ending}, root
        if "plural" in rules:
            forms["plural"] = root + ending + rules["plural"]
        else:
            stem += ending + rules["title"]
        words.append(Word(upos, forms, {"else": stem}, gender, animacy))
    return words
