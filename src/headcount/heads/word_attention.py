"""Attention between tokens of a text, from attention between the subwords they are cut into.

Letters in shapes: b sentences, h heads, q and k subword positions (EOS included) of queries and of
keys, v and w their tokens.
"""

import torch
from torch import Tensor
from torch.nn import functional

OUTSIDE = -1


def token_numbers(pieces: list[list[list[str]]]) -> Tensor:
    """Return the token of its sentence that each subword belongs to, [b, k].

    `pieces` holds, for every sentence, the pieces of each token. EOS and padding are `OUTSIDE`.
    """
    rows = [[n for n, token in enumerate(tokens) for _ in token] + [OUTSIDE] for tokens in pieces]
    table = torch.full((len(rows), max(map(len, rows))), OUTSIDE)
    for line, row in zip(table, rows, strict=True):
        line[: len(row)] = torch.tensor(row)
    return table


def word_attention(weights: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """Return attention between tokens, [b, h, v, w], of weights [b, h, q, k] between subwords.

    `queries` [b, q] and `keys` [b, k] number the tokens, as `token_numbers` does. Attention to a
    token is the sum over its subwords, attention from a token the mean. A row sums to 1 less the
    weight of subwords outside. Rows and columns past a sentence's last token are 0.
    """
    toward = weights @ _members(keys)[:, None].to(weights.dtype)
    rows = _members(queries)
    rows = rows / rows.sum(1, keepdim=True).clamp(min=1)
    return rows.transpose(1, 2)[:, None].to(weights.dtype) @ toward


def _members(numbers: Tensor) -> Tensor:
    """Return 1 where a subword belongs to a token, [b, k, w]."""
    members = functional.one_hot(numbers + 1, int(numbers.max()) + 2)
    return members[..., 1:].float()
