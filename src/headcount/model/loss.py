"""Cross-entropy of target tokens, plain or label-smoothed, in nats.

Both functions dispatch on the class of the model. `headcount_hf/hooks/hooked_seq2seq.py` has the
implementations for models of another library.
"""

from functools import singledispatch

import torch
from torch import Tensor
from torch.nn import functional

from headcount.data.batches import Batch
from headcount.model.kernels.fused_loss import FusedLoss, rows_at_once
from headcount.model.transformer import Memory, Transformer


@singledispatch
def token_losses(
    model: Transformer, batch: Batch, multiplier: Tensor | None = None, smoothing: float = 0.0
) -> Tensor:
    """Return the loss of every real target token, [tokens of the batch], in nats.

    Tokens are in the order of the batch, with EOS and without padding. With smoothing ε:
    (1 − ε) · cross-entropy + ε · the mean over the vocabulary.
    """
    return losses_after(model.encode(batch.src, multiplier), model, batch, multiplier, smoothing)


def losses_after(
    memory: Memory,
    model: Transformer,
    batch: Batch,
    multiplier: Tensor | None = None,
    smoothing: float = 0.0,
) -> Tensor:
    """Return `token_losses` from the memory of an encoder that has run."""
    states = batch.without_padding(model.decode(batch.tgt_in, memory, multiplier))
    targets = batch.without_padding(batch.tgt_out)
    rows = rows_at_once(model.tgt_embedding.num_embeddings, states.device)
    losses = []
    for part, words in zip(states.split(rows), targets.split(rows), strict=True):
        losses.append(cross_entropies(model.logits(part), words, smoothing))
    return torch.cat(losses)


def cross_entropies(logits: Tensor, words: Tensor, smoothing: float = 0.0) -> Tensor:
    """Return the loss of words [tokens] by scores [tokens, vocabulary], in nats."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))  # from bf16
    return functional.cross_entropy(logits, words, reduction="none", label_smoothing=smoothing)


@singledispatch
def summed_loss(
    model: Transformer, batch: Batch, multiplier: Tensor | None = None, smoothing: float = 0.0
) -> Tensor:
    """Return the sum of `token_losses`, a scalar in nats, with a fast gradient."""
    memory = model.encode(batch.src, multiplier)
    states = batch.without_padding(model.decode(batch.tgt_in, memory, multiplier))
    targets = batch.without_padding(batch.tgt_out)
    weight, bias = model.tgt_embedding.weight, model.output_bias
    return FusedLoss.apply(states, weight, targets, smoothing, bias)
