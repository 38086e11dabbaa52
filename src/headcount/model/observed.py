"""What passes through a model, for those who ask: attention weights, and what enters modules.

Letters in shapes: b sentences, h heads, q query positions, k key positions.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from torch import Tensor, nn

from headcount.model.transformer import Transformer

Visit = Callable[[str, int, Tensor], None]


@contextmanager
def watch_attention(model: Transformer, visit: Visit) -> Iterator[None]:
    """Context in which each attention layer, as it runs, shows its weights [b, h, q, k] to `visit`.

    `visit` gets kind, layer and weights, one layer at a time; what it does not keep is freed. The
    weights are made beside the fused path, which hands none out, and the model computes what it
    always does. Layers without heads are passed over. In a search k are the positions that a
    hypothesis looks at.
    """

    def show(kind: str, layer: int, _: nn.Module, inputs: tuple) -> None:
        queries, keys, _, attention = inputs[:4]
        visit(kind, layer, attention.weights(queries, keys))

    with ExitStack() as hooks:
        for kind, layer, module in model.attentions():
            if module.heads:
                hook = module.register_forward_pre_hook(partial(show, kind, layer))
                hooks.enter_context(hook)
        yield


@contextmanager
def watch_inputs(modules: Iterable[nn.Module]) -> Iterator[dict[nn.Module, Tensor]]:
    """Context that gives the first input of each of these modules, in the order they run in."""
    entering: dict[nn.Module, Tensor] = {}

    def keep(module: nn.Module, inputs: tuple) -> None:
        entering[module] = inputs[0]

    with ExitStack() as hooks:
        for module in modules:
            hooks.enter_context(module.register_forward_pre_hook(keep))
        yield entering
