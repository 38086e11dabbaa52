"""Sources through the encoder, those that stand there many times once."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from headcount.data.batches import Ids, pad_sources
from headcount.model.transformer import Memory, Transformer, first_device

# Positions of sources that the encoder reads at once; enough to fill a GPU. On a CPU few do as
# well, and neighbours in a search are of like length, so that little is padding.
_POSITIONS = {"cpu": 1024, "cuda": 1 << 20}


def encode_once(model: Transformer, sources: Sequence[Ids], multiplier: Tensor | None) -> Memory:
    """What the decoder sees of each source, in order; equal ones share one pass of the encoder.

    Sources are equal if their ids are, and the multipliers of their encoder heads: masks of decoder
    heads share what the encoder makes of a sentence. `multiplier`: None, [heads] or
    [sources, heads].
    """
    device = first_device(model)
    by_row = multiplier is not None and multiplier.ndim == 2
    heads = sum(model.grid.counts["enc_self"])  # they stand first in the flat order
    marks = multiplier[:, :heads].tolist() if by_row else [[]] * len(sources)
    keys = [(tuple(ids), tuple(mark)) for ids, mark in zip(sources, marks, strict=True)]
    firsts: dict[tuple, int] = {}
    for row, key in enumerate(keys):
        firsts.setdefault(key, row)
    chosen = list(firsts.values())
    own = multiplier[chosen] if by_row else multiplier
    memory = _read(model, [sources[row] for row in chosen], own, device)
    if len(chosen) == len(keys):
        return memory
    places = {key: place for place, key in enumerate(firsts)}
    rows = torch.tensor([places[key] for key in keys], device=device)
    return memory.each(lambda part: part.index_select(0, rows))


def _read(
    model: Transformer, sources: list[Ids], multiplier: Tensor | None, device: torch.device
) -> Memory:
    """The memory of all sources, a few at a time through the encoder."""
    parts = []
    for part in _parts([len(ids) + 1 for ids in sources], _POSITIONS[device.type]):
        own = multiplier[part] if multiplier is not None and multiplier.ndim == 2 else multiplier
        parts.append(model.encode(pad_sources(sources[part]).to(device), own))
    return parts[0] if len(parts) == 1 else _joined(parts)


def _parts(lengths: list[int], positions: int) -> Iterator[slice]:
    """Slices of neighbours that, padded to the longest, have so many positions, or of one."""
    start, longest = 0, 0
    for place, length in enumerate(lengths):
        longest = max(longest, length)
        if place > start and (place + 1 - start) * longest > positions:
            yield slice(start, place)
            start, longest = place, length
    yield slice(start, len(lengths))


def _joined(parts: list[Memory]) -> Memory:
    """The memory of the sentences of all parts, filled up to the longest."""
    longest = max(part.mask.shape[3] for part in parts)
    by_layer = zip(*(part.keys_values for part in parts), strict=True)
    pairs = [
        tuple(_stacked(tensors, longest) for tensors in zip(*layer, strict=True))
        for layer in by_layer
    ]
    masks = _stacked([part.mask.transpose(2, 3) for part in parts], longest)
    return Memory(pairs, masks.transpose(2, 3))


def _stacked(tensors: Sequence[Tensor], length: int) -> Tensor:
    """[b, h, length, e] of some [b, h, k, e], with zeros after k, which in a mask mean no."""
    return torch.cat([functional.pad(t, (0, 0, 0, length - t.shape[2])) for t in tensors])
