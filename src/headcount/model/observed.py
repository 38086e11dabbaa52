"""Attention weights for those who ask: made beside the fused path, which hands none out.

Letters in shapes: b sentences, h heads, q query positions, k key positions.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from torch import Tensor, nn

from headcount.model.transformer import Transformer

Visit = Callable[[str, int, Tensor], None]


@contextmanager
def watch_attention(model: Transformer, visit: Visit) -> Iterator[None]:
    """Context in which each attention layer, as it runs, shows its weights [b, h, q, k] to `visit`.

    `visit` gets kind, layer and weights, one layer at a time; what it does not keep is freed. The
    model computes what it always does. Layers without heads are passed over. In a search k are
    the positions that a hypothesis looks at.
    """

    def show(kind: str, layer: int, _: nn.Module, inputs: tuple) -> None:
        queries, keys, _, attention = inputs[:4]
        visit(kind, layer, attention.weights(queries, keys))

    handles = [
        module.register_forward_pre_hook(partial(show, kind, layer))
        for kind, layer, module in model.attentions()
        if module.heads
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
