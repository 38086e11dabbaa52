"""Multiply-adds of a sentence of mean lengths: of heads, feed-forward units, layers and models.

Matrix products count. Biases, norms, softmax and the lookup of embeddings do not. Every position of
source and target is computed once, as in training or with a beam of one.
"""

from typing import NamedTuple

import numpy as np

from headcount.base.addresses import HeadGrid
from headcount.base.settings.model import ModelSettings


class Lengths(NamedTuple):
    """Mean lengths of source and target, in subwords with EOS."""

    source: float
    target: float


def unit_costs(grid: HeadGrid, settings: ModelSettings, lengths: Lengths) -> np.ndarray:
    """Return the multiply-adds of every unit of a grid in flat order."""
    costs = _costs(settings, lengths)
    spans = ((costs[kind][layer], span) for kind, layer, span in grid.layers())
    return np.concatenate([np.full(span.stop - span.start, cost) for cost, span in spans])


def multiply_adds(settings: ModelSettings, vocabulary: int, lengths: Lengths) -> float:
    """Return the multiply-adds of a model. `vocabulary`: number of subwords of the target."""
    costs = _costs(settings, lengths)
    layers = costs["enc_layer"].sum() + costs["dec_layer"].sum()
    return float(layers + settings.d_model * vocabulary * lengths.target)


def _costs(settings: ModelSettings, lengths: Lengths) -> dict[str, np.ndarray]:
    """Return the multiply-adds of one unit by type, [layers]."""
    (n, m), d, e = lengths, settings.d_model, settings.head_width
    single = {
        "enc_self": 4 * d * e * n + 2 * n**2 * e,
        "dec_self": 4 * d * e * m + m**2 * e,  # half of the positions, since it is causal
        "dec_enc": 2 * d * e * (n + m) + 2 * m * n * e,
        "enc_ffn": 2 * d * n,
        "dec_ffn": 2 * d * m,
    }
    counts = {**settings.grid.counts, **settings.ffn_widths}
    costs = {kind: np.full(len(counts[kind]), cost, dtype=float) for kind, cost in single.items()}
    for side in ("enc", "dec"):
        own = [costs[kind] * counts[kind] for kind in single if kind.startswith(side)]
        costs[f"{side}_layer"] = np.sum(own, axis=0)
    return costs
