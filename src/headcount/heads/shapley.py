"""Shapley values of heads: each one's share of what all of them together take off the loss.

Source: Held and Yang 2023, section 3; sampling by Ghorbani and Zou 2019, algorithm 1.
"""

from collections.abc import Callable, Iterable

import numpy as np
import torch

from headcount.base.random_streams import Stream
from headcount.heads.masked_loss import MaskedLoss


def random_orders(heads: int, orders: int, seed: int) -> list[list[int]]:
    """So many orders in which heads are switched off, each of all heads; the same for a seed."""
    return [
        Stream.SHAPLEY.generator(seed, order).permutation(heads).tolist()
        for order in range(1, orders + 1)
    ]


def shapley_by_order(
    loss: MaskedLoss,
    orders: Iterable[list[int]],
    tolerance: float,
    done: Callable[[], object] = lambda: None,
) -> np.ndarray:
    """What the loss rises by as each head is switched off, [orders, heads]; nats per sentence.

    In an order a head's value is L(S without it) − L(S), S being the heads still on; each row
    adds up to L(0) − L(1), the loss without any head minus that with all. The mean over orders
    estimates the Shapley value: larger means that the head lowers the loss by more, below 0 that
    it raises it. An order is cut short once the loss is within `tolerance` · |L(0) − L(1)| of
    L(0): heads still on then share the rest evenly. `done` is called after each order.
    """
    whole, none = loss.whole_and_none()
    rows = []
    for order in orders:
        rows.append(_one_order(loss, order, whole, none, tolerance * abs(none - whole)))
        done()
    return np.stack(rows)


def _one_order(
    loss: MaskedLoss, order: list[int], whole: float, none: float, near: float
) -> np.ndarray:
    """A row of `shapley_by_order`."""
    values, on = np.zeros(len(order)), torch.ones(len(order))
    before = whole
    for place, head in enumerate(order):
        if abs(none - before) <= near or place == len(order) - 1:
            left = order[place:]
            values[left] = (none - before) / len(left)
            break
        on[head] = 0
        after = loss.under(on)
        values[head] = after - before
        before = after
    return values
