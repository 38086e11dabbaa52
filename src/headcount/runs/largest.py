"""The few largest of many values, faster than a sort of them all."""

import torch
from torch import Tensor

_BLOCK = 64  # values that share a maximum while the largest are looked for


def largest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest `count` values of each row [b, count] of [b, v], and their places.

    Looks for them only in the blocks of a row that have the largest maxima: a row's largest values
    are all in as many blocks. All of a row if it has fewer values than `count`.
    """
    size = values.shape[1]
    blocks = size // _BLOCK
    if blocks <= count:
        return values.topk(min(count, size))
    whole = values[:, : blocks * _BLOCK].unflatten(1, (blocks, _BLOCK))
    chosen = whole.amax(2).topk(count, sorted=False).indices
    places = torch.cat(
        (
            (chosen[..., None] * _BLOCK + torch.arange(_BLOCK, device=values.device)).flatten(1),
            torch.arange(blocks * _BLOCK, size, device=values.device).expand(len(values), -1),
        ),
        dim=1,
    )
    best, which = values.gather(1, places).topk(count)
    return best, places.gather(1, which)
