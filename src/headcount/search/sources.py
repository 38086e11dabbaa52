"""Sources of a search: batches, longest outputs, and encoder output once for equal sources."""

import sys
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import Ids, neighbours, pad_sources
from headcount.model.layers import Memory
from headcount.model.transformer import Transformer, first_device


def longest_outputs(
    sources: Sequence[Ids], settings: DecodeSettings, prefix: Sequence[int], positions: int
) -> list[int]:
    """Return the longest output of each source with prefix and EOS, in subwords.

    `positions`: size of the model's table of positions, 0 for no limit.
    """
    factor, extra = settings.max_length_factor, settings.max_length_extra
    least, most = len(prefix) + 1, positions or sys.maxsize
    return [min(max(int(factor * len(ids)) + extra, least), most) for ids in sources]


def search_batches(sources: Sequence[Ids], budget: int) -> list[list[int]]:
    """Return numbers of the non-empty sources, longest first and equal ones side by side."""
    firsts: dict[tuple[int, ...], int] = {}
    places = [firsts.setdefault(tuple(ids), number) for number, ids in enumerate(sources)]
    filled = (number for number, ids in enumerate(sources) if ids)
    order = sorted(filled, key=lambda number: (-len(sources[number]), places[number]))
    lengths = [len(sources[number]) + 1 for number in order]
    return [order[part] for part in neighbours(lengths, budget)]


def encode_once(model: Transformer, sources: Sequence[Ids], multiplier: Tensor | None) -> Memory:
    """Return the memory of sources, in order. Equal sources share one pass of the encoder.

    Sources are equal if their ids and the multipliers of their encoder heads are equal.
    `multiplier`: None, [heads] or [sources, heads].
    """
    device = first_device(model)
    by_row = multiplier is not None and multiplier.ndim == 2
    heads = sum(model.grid.counts["enc_self"])  # they stand first in the flat order
    marks = multiplier[:, :heads].tolist() if by_row else [[]] * len(sources)
    places: dict[tuple, int] = {}  # of distinct sources
    keys = zip(map(tuple, sources), map(tuple, marks), strict=True)
    rows = [places.setdefault(key, len(places)) for key in keys]
    chosen = np.unique(rows, return_index=True)[1].tolist()
    tokens = pad_sources([sources[row] for row in chosen]).to(device)
    memory = model.encode(tokens, multiplier[chosen] if by_row else multiplier)
    if len(chosen) == len(sources):
        return memory
    order = torch.tensor(rows, device=device)
    return memory.each(lambda part: part.index_select(0, order))
