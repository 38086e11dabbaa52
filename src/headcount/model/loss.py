"""Cross-entropy of target tokens, plain or label-smoothed, in nats."""

import torch
from torch import Tensor
from torch.nn import functional

from headcount.data.batches import Batch
from headcount.model.transformer import Transformer


def token_losses(
    model: Transformer, batch: Batch, multiplier: Tensor | None = None, smoothing: float = 0.0
) -> Tensor:
    """Loss of every real target token, [tokens of the batch], in nats; smaller is better.

    Sentence by sentence in the order of the batch, EOS included, padding left out before the
    output layer. With smoothing ε: (1 − ε) · cross-entropy + ε · the mean over the vocabulary.
    """
    memory = model.encode(batch.src, multiplier)
    states = model.decode(batch.tgt_in, memory, multiplier)
    real = states.flatten(0, 1).index_select(0, batch.real)
    logits = model.logits(real)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))  # from bf16
    targets = batch.tgt_out.flatten().index_select(0, batch.real)
    return functional.cross_entropy(logits, targets, reduction="none", label_smoothing=smoothing)
