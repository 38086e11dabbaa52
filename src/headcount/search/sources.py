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

# Positions of sources that the encoder reads at once. On a CPU few do as well as many, and
# neighbours in a search are of similar length, so that little is padding.
_POSITIONS = {"cpu": 1024, "cuda": 1 << 20}


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
    distinct = [sources[row] for row in chosen]
    parts = []
    for part in neighbours([len(ids) + 1 for ids in distinct], _POSITIONS[device.type]):
        of_part = multiplier[chosen[part]] if by_row else multiplier
        parts.append(model.encode(pad_sources(distinct[part]).to(device), of_part))
    memory = parts[0] if len(parts) == 1 else _joined(parts)
    if len(chosen) == len(sources):
        return memory
    order = torch.tensor(rows, device=device)
    return memory.each(lambda part: part.index_select(0, order))


def _joined(parts: list[Memory]) -> Memory:
    """Return the memory of the sentences of all parts, padded to the longest."""
    longest = max(part.mask.shape[3] for part in parts)
    by_layer = zip(*(part.keys_values for part in parts), strict=True)
    pairs = [[_stacked(t, longest) for t in zip(*layer, strict=True)] for layer in by_layer]
    masks = _stacked([part.mask.transpose(2, 3) for part in parts], longest)
    return Memory(pairs, masks.transpose(2, 3))


def _stacked(tensors: Sequence[Tensor], length: int) -> Tensor:
    """Return [b, h, length, e] of several [b, h, k, e], with zeros after k."""
    heads, width = tensors[0].shape[1], tensors[0].shape[3]
    whole = tensors[0].new_zeros(sum(map(len, tensors)), heads, length, width)
    for part, given in zip(whole.split(list(map(len, tensors))), tensors, strict=True):
        part[:, :, : given.shape[2]] = given
    return whole
