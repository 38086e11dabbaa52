"""Links between source and target words by cross-attention, of heads and of means of heads.

A target word is linked to the source word with the largest weight. Weights are summed over the
pieces of a source word and averaged over the pieces of a target word first.
"""

from functools import singledispatch
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from headcount.base.addresses import Head
from headcount.data.batches import Batch
from headcount.model.transformer import Transformer, watch_attention

if TYPE_CHECKING:
    import pandas as pd

STEPS = ("output", "input")
"""The query that predicts a piece, and the query that has just read it (Chen et al. 2020)."""
WORDS = ("all", "content")
"""Whether special tokens and words that are only punctuation take part."""


@singledispatch
def cross_weights(model: Transformer, batch: Batch) -> Tensor:
    """Return the weights [b, h, q, k] of all cross-attention heads, h in flat order."""
    sizes = (*batch.tgt_in.shape, batch.src.shape[1])
    layers = [torch.zeros(sizes[0], 0, *sizes[1:], device=batch.src.device)]  # if all are pruned
    with watch_attention(model.eval(), lambda *layer: layers.append(layer[-1]), ("dec_enc",)):
        model.decode(batch.tgt_in, model.encode(batch.src))
    return torch.cat(layers, 1)


def best_heads(frame: "pd.DataFrame", k: int, layer: int | None = None) -> list[Head]:
    """Return the k heads that rank first in a frame of alignment.csv, of one layer or of all.

    Ranks are by AER on the sentences that choose, at the output step and over content words.
    """
    heads = frame.query("system == 'head' and step == 'output' and words == 'content'")
    if layer is not None:
        heads = heads[heads["layer"] == layer]
    places = heads.nsmallest(k, "rank")[["kind", "layer", "head"]]
    return [Head(kind, int(layer), int(head)) for kind, layer, head in places.to_numpy()]
