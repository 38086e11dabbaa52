"""How far a search goes, whoever's it is: the longest outputs, and which sources share a batch."""

import sys
from collections.abc import Sequence

from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import Ids, neighbours


def longest_outputs(
    sources: Sequence[Ids], settings: DecodeSettings, prefix: Sequence[int], positions: int
) -> list[int]:
    """The longest output of each source with its EOS, subwords; its prefix and end have room.

    `positions`: how many the model knows; 0 stands for any number.
    """
    factor, extra = settings.max_length_factor, settings.max_length_extra
    most = positions or sys.maxsize
    shortest = len(prefix) + 1  # with its end
    return [min(max(int(factor * len(ids)) + extra, shortest), most) for ids in sources]


def search_batches(sources: Sequence[Ids], budget: int) -> list[list[int]]:
    """Numbers of the non-empty sources by length, longest first, cut by the token budget.

    Equal sources stand together, so that a batch reads each of them once; see `encode_once`.
    """
    firsts: dict[tuple[int, ...], int] = {}
    places = [firsts.setdefault(tuple(ids), number) for number, ids in enumerate(sources)]
    filled = (number for number, ids in enumerate(sources) if ids)
    order = sorted(filled, key=lambda number: (-len(sources[number]), places[number]))
    lengths = [len(sources[number]) + 1 for number in order]
    return [order[part] for part in neighbours(lengths, budget)]
