"""The largest of many sums, without adding all of them."""

import torch
from torch import Tensor

_BLOCK = 64  # values that share a maximum while the largest are looked for


def largest(values: Tensor, added: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the largest `count` sums of values [b, m, v] and added [b, m], and their places.

    Sums and places in m · v are [b, count], or [b, m · v] if that is fewer. Only the `count` blocks
    with the largest maxima are searched, which contain all of the largest sums.
    """
    _, rows, size = values.shape
    blocks = size // _BLOCK
    if rows * blocks <= count:
        return (values + added[..., None]).flatten(1).topk(min(count, rows * size))
    whole = values[..., : blocks * _BLOCK].unflatten(2, (blocks, _BLOCK))
    chosen = (whole.amax(3) + added[..., None]).flatten(1).topk(count, sorted=False).indices
    first = chosen // blocks * size + chosen % blocks * _BLOCK
    inside = first[..., None] + torch.arange(_BLOCK, device=values.device)
    rest = torch.arange(rows * size, device=values.device).view(rows, size)[:, blocks * _BLOCK :]
    places = torch.cat((inside.flatten(1), rest.flatten().expand(len(values), -1)), dim=1)
    sums = values.flatten(1).gather(1, places) + added.gather(1, places // size)
    best, which = sums.topk(count)
    return best, places.gather(1, which)
