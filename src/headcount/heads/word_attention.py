"""Attention between tokens of a text, from attention between the subwords they are cut into.

Letters in shapes: b sentences, h heads, q and k subword positions (EOS included) of queries and of
keys, v and w their tokens.
"""

import torch
from torch import Tensor
from torch.nn import functional

OUTSIDE = -1


def token_numbers(pieces: list[list[list[str]]], eos_is_token: bool = False) -> Tensor:
    """[b, k]: which token of its sentence each subword belongs to; `OUTSIDE` for padding.

    `pieces` holds, for every sentence, the pieces of each token. EOS is outside too, or else a
    token after the last.
    """
    rows = [
        [number for number, token in enumerate(tokens) for _ in token]
        + [len(tokens) if eos_is_token else OUTSIDE]
        for tokens in pieces
    ]
    table = torch.full((len(rows), max(map(len, rows))), OUTSIDE)
    for line, row in zip(table, rows, strict=True):
        line[: len(row)] = torch.tensor(row)
    return table


def word_attention(weights: Tensor, queries: Tensor, keys: Tensor, to: str, start: str) -> Tensor:
    """Attention between tokens, [b, h, v, w], of weights [b, h, q, k] between subwords.

    `queries` [b, q] and `keys` [b, k] number the tokens, as `token_numbers` does. To a token: `to`
    is the sum, max or first of its subwords. From a token: `start` is the mean, first or last of
    its subwords. With sum and mean a row sums to 1 less what subwords outside get. Rows and
    columns past a sentence's last token are 0.
    """
    if to == "max":
        toward = _largest(weights, keys)
    else:
        columns = _members(keys) if to == "sum" else _first(_members(keys))
        toward = weights @ columns[:, None].to(weights.dtype)
    rows = _members(queries)
    if start == "first":
        rows = _first(rows)
    elif start == "last":
        rows = _first(rows.flip(1)).flip(1)
    else:
        rows = rows / rows.sum(1, keepdim=True).clamp(min=1)
    return rows.transpose(1, 2)[:, None].to(weights.dtype) @ toward


def _members(numbers: Tensor) -> Tensor:
    """[b, k, w]: 1 where a subword belongs to a token."""
    members = functional.one_hot(numbers + 1, int(numbers.max()) + 2)
    return members[..., 1:].float()


def _first(members: Tensor) -> Tensor:
    """[b, k, w]: 1 where a subword is the first of a token; `members`: where it belongs to it."""
    return members * (members.cumsum(1) == 1)


def _largest(weights: Tensor, numbers: Tensor) -> Tensor:
    """[b, h, q, w]: the largest weight to any subword of each token."""
    width = int(numbers.max()) + 2
    target = (numbers + 1)[:, None, None, :].expand_as(weights)
    zeros = weights.new_zeros(*weights.shape[:-1], width)
    return zeros.scatter_reduce(-1, target, weights, "amax")[..., 1:]
