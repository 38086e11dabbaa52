"""Exported models, opened in their own programs."""

from dataclasses import dataclass
from typing import Protocol

from headcount.data.batches import Ids
from headcount.data.bpe import AnySegmenter
from headcount.search.translation import Search


@dataclass(frozen=True)
class Best:
    """The best hypothesis of one sentence."""

    ids: Ids  # without EOS
    capped: bool  # as long as the longest output allowed, or cut off there


class Exported(Search, Protocol):
    """A model in its own program, in fp32 without length penalty."""

    own_sides: tuple[AnySegmenter, AnySegmenter] | None
    """The tokeniser in the model's folder as segmenters, in the ids of the search; None: none."""

    def score(self, sources: list[Ids], targets: list[Ids]) -> list[float]:
        """Return the log-probability of each target with its end, in nats."""
        ...
