"""Integrated gradients over the multipliers of heads: what each adds on the way from none to all.

Source: Sundararajan et al. 2017, section 3, with the multipliers in place of an input's features;
Hao et al. 2021 integrate over the weights of attention.
"""

from collections.abc import Callable

import numpy as np

from headcount.base.settings.importance import ImportanceSettings
from headcount.data.batches import ParallelText, in_order
from headcount.heads.importance import sentence_scale, sentence_slopes
from headcount.model.transformer import Transformer, first_device


def integrated_gradients(
    model: Transformer,
    text: ParallelText,
    settings: ImportanceSettings,
    smoothing: float,
    points: int,
    done: Callable[[int], object] = lambda sentences: None,
) -> np.ndarray:
    """I_h = −∫₀¹ E[∂L(x; ξ = α · 1)/∂ξ_h] dα of every head, [heads]; nats per sentence.

    Larger: the head lowers the loss by more; below 0 it raises it. The values add up to
    L(0) − L(1), the loss without any head minus that with all, but for the error of the
    quadrature: the midpoints of `points` equal parts, each as long as a pass for importance.
    `done` is told the number of sentences finished, once for each point.
    """
    total = np.zeros(model.grid.size)
    for batch in in_order(text, settings.batch_tokens, first_device(model)):
        scale = sentence_scale(batch, settings)
        for point in range(points):
            at = (point + 0.5) / points
            slopes, _ = sentence_slopes(model, batch, smoothing, scale, at)
            total -= slopes.double().sum(0).cpu().numpy()
            done(len(batch.indices))
    return total / (points * len(text))
