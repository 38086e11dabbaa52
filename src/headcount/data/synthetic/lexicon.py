"""The words of the synthetic grammar, read from its rules and drawn at random."""

from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, cycle, islice
from random import Random
from typing import Any


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
    listed = {name: _words(rules[name], *columns) for name, columns in rules["columns"].items()}
    known = [*listed["nouns"], *listed["adjectives"]]
    roots = _roots(rules["roots"], {stem for word in known for stem in word.stems.values()})
    nouns = [*listed.pop("nouns"), *_coined("NOUN", rules["rare_nouns"], roots)]
    names = _coined("PROPN", rules["names"], roots)
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


def _coined(upos: str, rules: Mapping[str, Any], roots: Iterator[str]) -> list[Word]:
    """Return words of roots and endings. Words with a plural have the root alone in the target."""
    words = []
    endings = islice(cycle(rules["endings"]), rules["count"])
    for (ending, gender, animacy), root in zip(endings, roots, strict=False):
        forms, stem = {"singular": root + ending}, root
        if "plural" in rules:
            forms["plural"] = root + ending + rules["plural"]
        else:
            stem += ending + rules["title"]
        words.append(Word(upos, forms, {"else": stem}, gender, animacy))
    return words
