"""Cross-entropy of target tokens, plain or label-smoothed, in nats, and its fast sum.

Scores over the vocabulary are the largest tensor of a training step. In `FusedLoss` a part of them
becomes loss and gradient while it is in the processor's cache, and is overwritten by the next part.
`headcount_hf/hooks/hooked_seq2seq.py` has `token_losses` and `summed_loss` of other libraries.

Letters in shapes: t target tokens, d model width, v vocabulary.
"""

from functools import singledispatch

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from headcount.data.batches import Batch
from headcount.model.kernels.matmul import ROWS, matmul_transposed, weight_gradient
from headcount.model.transformer import Memory, Transformer

_BYTES = {"cpu": 16 << 20, "cuda": 512 << 20}  # scores at once


def rows_at_once(vocabulary: int, device: torch.device) -> int:
    """Return the number of target tokens whose scores are held at one time."""
    rows = _BYTES[device.type] // (4 * vocabulary)
    return max(1, rows - rows % ROWS if rows > ROWS else rows)


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


class FusedLoss(torch.autograd.Function):
    """Sum over tokens of (1 − ε) · cross-entropy + ε · its mean over the vocabulary, in nats."""

    @staticmethod
    def forward(
        ctx,
        states: Tensor,
        weight: Tensor,
        targets: Tensor,
        smoothing: float,
        bias: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of states [t, d], weights [v, d], targets [t] and a frozen bias [v]."""
        ctx.needs = ctx.needs_input_grad[:2]
        device, exact = states.device.type, torch.promote_types(states.dtype, torch.float32)
        autocast = torch.is_autocast_enabled(device)
        kind = torch.get_autocast_dtype(device) if autocast else states.dtype
        words = weight.to(kind)
        by_states = torch.empty_like(states) if ctx.needs[0] else None
        by_weight = torch.zeros_like(weight) if ctx.needs[1] else None
        loss = torch.zeros((), dtype=exact, device=states.device)
        rows = rows_at_once(len(weight), states.device)
        for start in range(0, len(states), rows):
            part = slice(start, start + rows)
            hidden, wanted = states[part].to(kind), targets[part, None]
            logs = matmul_transposed(hidden, words).to(exact)
            logs = (logs if bias is None else logs + bias).log_softmax(-1)
            loss -= (1 - smoothing) * logs.gather(1, wanted).sum() + smoothing * logs.mean(-1).sum()
            if not any(ctx.needs):
                continue
            # The gradient by the scores, softmax minus the smoothed target, replaces the logs.
            scores = logs.exp_()
            if smoothing:
                scores -= smoothing / scores.shape[1]
            scores.scatter_add_(1, wanted, torch.full_like(wanted, smoothing - 1, dtype=exact))
            scores = scores.to(kind)
            if by_states is not None:
                by_states[part] = matmul_transposed(scores, words.t())
            if by_weight is not None:
                # In bf16 the sum of a part is rounded, the sum of the parts is not.
                by_weight += weight_gradient(scores, hidden)
        ctx.save_for_backward(*(g for g in (by_states, by_weight) if g is not None))
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Return both gradients times the gradient of the sum."""
        saved = iter(ctx.saved_tensors)
        states, weight = (next(saved) * upstream if need else None for need in ctx.needs)
        return states, weight, None, None, None
