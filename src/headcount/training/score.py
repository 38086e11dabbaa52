"""Loss of given translations, by teacher forcing."""

import torch
from torch import Tensor

from headcount.data.batches import ParallelText, in_order
from headcount.model.loss import token_losses
from headcount.model.transformer import Transformer, check_multiplier, first_device
from headcount.training.processes import add_up, own_share


@torch.inference_mode()
def score_targets(
    model: Transformer, text: ParallelText, budget: int, multiplier: Tensor | None = None
) -> Tensor:
    """Return the loss of each pair's target given its source, [pairs], in nats, EOS included.

    `multiplier`: [heads] or [pairs, heads]. `budget`, in tokens of a batch, changes only speed.
    Processes that train together share the batches out.
    """
    model.eval()
    device = first_device(model)
    check_multiplier(model, multiplier, len(text))
    by_pair = multiplier is not None and multiplier.ndim == 2
    losses = torch.zeros(len(text), dtype=torch.float64)
    for _, batch in own_share(in_order(text, budget, device)):
        part = multiplier[batch.indices] if by_pair else multiplier
        part = None if part is None else part.to(device)
        tokens = token_losses(model, batch, part).double().cpu()
        lengths = torch.tensor(batch.tgt_lengths)
        sentence = torch.arange(len(batch.indices)).repeat_interleave(lengths)
        sums = torch.zeros(len(batch.indices), dtype=torch.float64).index_add_(0, sentence, tokens)
        losses[batch.indices] = sums
    add_up([losses])
    return losses


def mean_loss(
    model: Transformer, text: ParallelText, budget: int, multiplier: Tensor | None = None
) -> float:
    """Return the loss per target token of a text, in nats, EOS counted. Smaller is better."""
    tokens = int(text.lengths[1].sum())
    return float(score_targets(model, text, budget, multiplier).sum()) / tokens
