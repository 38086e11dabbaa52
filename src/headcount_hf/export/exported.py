"""Exported models, opened in their own programs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import Ids
from headcount.data.bpe import AnySegmenter
from headcount.model.machine import batches_of
from headcount.search.sources import longest_outputs, search_batches

Sides = tuple[AnySegmenter, AnySegmenter]  # segmenters of source and target


@dataclass(frozen=True)
class Best:
    """The best hypothesis of one sentence."""

    ids: Ids  # without EOS
    hit_max_length: bool  # True if it has the longest length allowed


class Exported(ABC):
    """A model in its own program on the CPU, with our ids."""

    weights: str  # name of their file
    facts: dict[str, Any]  # program and its settings, for records

    def __init__(self, sides: Sides, settings: DecodeSettings, positions: int):
        """Remember segmenters, settings and the number of positions."""
        self.sides, self.settings, self.positions = sides, settings, positions

    def translate(
        self, sources: list[Ids], done: Callable[[int], object] = lambda sentences: None
    ) -> Sequence[Best]:
        """Return the best translation of every source in order. An empty source stays empty."""
        budget = self.settings.batch_tokens
        limits = longest_outputs(sources, self.settings, self.sides[1].prefix, self.positions)
        best, batches = [Best([], False)] * len(sources), search_batches(sources, budget)
        with batches_of("resources", budget):
            begun = [
                self._begin([sources[n] for n in numbers], max(limits[n] for n in numbers))
                for numbers in batches
            ]
            for numbers, results in zip(batches, begun, strict=True):
                for number, result in zip(numbers, results, strict=True):
                    best[number] = self._choose(result, limits[number])
                done(len(numbers))
        return best

    @abstractmethod
    def _begin(self, sources: list[Ids], longest: int) -> Iterable[Any]:
        """Start to translate a batch, and return what waits for the result of every sentence."""

    @abstractmethod
    def _choose(self, result: Any, limit: int) -> Best:
        """Return the best hypothesis of a result that is not longer than a limit."""

    @abstractmethod
    def score(self, sources: list[Ids], targets: list[Ids]) -> list[float]:
        """Return the log-probability of every target with its end, in nats."""
