"""Attention weights for those who ask: made beside the fused path, which hands none out.

Letters in shapes: b sentences, h heads, q query positions, k key positions.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from torch import Tensor, nn

from headcount.model.attention import MultiHeadAttention, attention_weights
from headcount.model.kernels.places import Places
from headcount.model.transformer import Transformer

Visit = Callable[[str, int, Tensor], None]


def attention_modules(model: Transformer) -> list[tuple[str, int, MultiHeadAttention]]:
    """Kind, layer and module of every attention layer, in the order of `HeadGrid`."""
    modules = {
        "enc_self": [layer.attention for layer in model.encoder],
        "dec_self": [layer.attention for layer in model.decoder],
        "dec_enc": [layer.cross for layer in model.decoder],
    }
    return [
        (kind, number, module)
        for kind, layers in modules.items()
        for number, module in enumerate(layers)
    ]


@contextmanager
def watch_attention(model: Transformer, visit: Visit) -> Iterator[None]:
    """Context in which each attention layer, as it runs, shows its weights [b, h, q, k] to `visit`.

    `visit` gets kind, layer and weights, one layer at a time; what it does not keep is freed. The
    model computes what it always does. Layers without heads are passed over. Not for a search,
    whose hypotheses name their keys by place: TypeError.
    """

    def show(
        kind: str, layer: int, _: nn.Module, inputs: tuple[Tensor, ...], options: dict
    ) -> None:
        queries, keys = inputs[:2]
        mask = inputs[3] if len(inputs) > 3 else None
        if isinstance(mask, Places):
            raise TypeError("weights over all positions: expected a whole target, found a search")
        visit(kind, layer, attention_weights(queries, keys, mask, options.get("causal", False)))

    handles = [
        module.register_forward_pre_hook(partial(show, kind, layer), with_kwargs=True)
        for kind, layer, module in attention_modules(model)
        if module.heads
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
