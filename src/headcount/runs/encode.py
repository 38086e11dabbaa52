"""Sources through the encoder, those that stand there many times once."""

from collections.abc import Sequence

import torch
from torch import Tensor

from headcount.data.batches import Ids, pad_sources
from headcount.model.transformer import Memory, Transformer, first_device


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
    memory = model.encode(pad_sources([sources[row] for row in chosen]).to(device), own)
    if len(chosen) == len(keys):
        return memory
    places = {key: place for place, key in enumerate(firsts)}
    rows = torch.tensor([places[key] for key in keys], device=device)
    return memory.each(lambda part: part.index_select(0, rows))
