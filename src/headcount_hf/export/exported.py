"""Exported models, opened in their own programs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import Ids
from headcount.data.bpe import AnySegmenter
from headcount.search.translation import Search

Sides = tuple[AnySegmenter, AnySegmenter]  # segmenters of source and target
Rows = tuple[list[int], list[int]]  # of source and target: their word for every id of ours


@dataclass(frozen=True)
class Best:
    """The best hypothesis of one sentence."""

    ids: Ids  # without EOS
    capped: bool  # True if it has the longest length allowed


class Exported(Search, Protocol):
    """A model in its own program, in fp32 without length penalty."""

    own_sides: Sides | None
    """The tokeniser in the model's folder as segmenters with our ids, None without one."""

    def score(self, sources: list[Ids], targets: list[Ids]) -> list[float]:
        """Return the log-probability of every target with its end, in nats."""
        ...


OpenExported = Callable[[DecodeSettings], Exported]
