"""Links of one sentence by its attention, without batches."""

import torch
from torch import Tensor

from headcount.heads.head_measures import word_attention, word_numbers


def word_links(
    weights: Tensor, source: list[int], target: list[int], step: str
) -> list[tuple[int, int]]:
    """Return the links of one sentence, source word first, without special tokens.

    `weights` [queries, keys] of a head or a mean of heads include BOS and EOS, as `all_weights`
    returns them. `source` and `target` are the numbers of pieces of each word. Marks stand between
    BOS and the first word.
    """
    if not sum(source) or not sum(target):
        return []
    marks = (weights.shape[0] - 1 - sum(target), weights.shape[1] - 1 - sum(source))
    read = int(step == "input")
    queries = word_numbers(target, marks[0] + read, 1 - read)
    keys = word_numbers(source, marks[1], 1)
    numbers = (torch.tensor([side]) for side in (queries, keys))
    largest, where = word_attention(weights[None, None], *numbers)[0, 0].max(-1)
    return [(int(where[word]), word) for word in largest.nonzero()[:, 0].tolist()]
