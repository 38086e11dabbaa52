"""Attention between words, from attention between their subwords.

Letters in shapes: b sentences, h heads, q and k subword positions (EOS included) of queries and of
keys, v and w their words.
"""

import torch
from torch import Tensor
from torch.nn import functional

OUTSIDE = -1


def token_numbers(pieces: list[list[list[str]]]) -> Tensor:
    """Return the number of the word that each subword belongs to, [b, k].

    `pieces` lists the subwords of each word of each sentence. EOS and padding are `OUTSIDE`.
    """
    rows = [[n for n, word in enumerate(words) for _ in word] + [OUTSIDE] for words in pieces]
    width = max(map(len, rows))
    return torch.tensor([row + [OUTSIDE] * (width - len(row)) for row in rows])


def word_attention(weights: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """Return attention between words, [b, h, v, w], of weights [b, h, q, k] between subwords.

    `queries` [b, q] and `keys` [b, k] number the words, as `token_numbers` does. Attention to a
    word is the sum over its subwords, attention from a word the mean. A row sums to 1 less the
    weight of subwords outside. Rows and columns past a sentence's last word are 0.
    """
    toward = weights @ _members(keys)[:, None].to(weights.dtype)
    rows = _members(queries)
    rows = rows / rows.sum(1, keepdim=True).clamp(min=1)
    return rows.transpose(1, 2)[:, None].to(weights.dtype) @ toward


def _members(numbers: Tensor) -> Tensor:
    """Return 1 where a subword belongs to a word, [b, k, w]."""
    members = functional.one_hot(numbers + 1, int(numbers.max()) + 2)
    return members[..., 1:].float()
