"""Hooks for attention weights and for the inputs of modules.

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
    """Call `visit` with kind, layer and weights [b, h, q, k] of every attention layer as it runs.

    The weights are computed beside the model's own path, whose results stay the same. Layers
    without heads are skipped. In a search k are the positions that a hypothesis attends to.
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
    """Yield a dict that receives the first inputs of these modules, in the order they run in."""
    entering: dict[nn.Module, Tensor] = {}

    def keep(module: nn.Module, inputs: tuple) -> None:
        entering[module] = inputs[0]

    with ExitStack() as hooks:
        for module in modules:
            hooks.enter_context(module.register_forward_pre_hook(keep))
        yield entering
