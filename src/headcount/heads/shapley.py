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
    loss: MaskedLoss, orders: Iterable[list[int]], done: Callable[[], object] = lambda: None
) -> np.ndarray:
    """Return the rise of the loss as each head is masked, [orders, heads]; nats per sentence.

    In an order a head's value is L(S without it) − L(S), S being the heads still on. Each row adds
    up to L(0) − L(1), the loss without any head minus the loss with all. The mean over orders
    estimates the Shapley value: larger means that the head lowers the loss by more, below 0 that it
    raises it. `done` is called after each order.
    """
    whole, none = loss.whole_and_none()
    rows = []
    for order in orders:
        rows.append(_one_order(loss, order, whole, none))
        done()
    return np.stack(rows)


def _one_order(loss: MaskedLoss, order: list[int], whole: float, none: float) -> np.ndarray:
    """Return a row of `shapley_by_order`."""
    values, on = np.zeros(len(order)), torch.ones(len(order))
    losses = [whole]
    for head in order[:-1]:
        on[head] = 0
        losses.append(loss.under(on))
    values[order] = np.diff([*losses, none])
    return values
