"""Removal of heads: smaller matrices with the output of a mask. Restoring and ordering heads."""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from headcount.base.addresses import KINDS, Head
from headcount.base.settings.model import ModelSettings
from headcount.model.attention import MultiHeadAttention
from headcount.model.transformer import Transformer, copy_weights, first_device


def remove_heads(model: Transformer, multiplier: Tensor) -> Transformer:
    """Return a new model without the heads whose multiplier, [heads] in flat order, is 0.

    Other multipliers are folded into the columns of W_O, and the `means` of a module into its bias.
    Up to rounding the output is the same as under the multiplier. Raises ValueError for a
    multiplier of another shape.
    """
    if multiplier.shape != (model.grid.size,):
        raise ValueError(f"expected [{model.grid.size}], found {list(multiplier.shape)}")
    multiplier = multiplier.detach().to(first_device(model))

    def change(kind: str, layer: int, attention: MultiHeadAttention) -> dict[str, Tensor]:
        return _kept_weights(attention, model.part(multiplier, kind, layer))

    return _rebuilt(model, change)


def set_means(model: Transformer, means: Tensor | None) -> None:
    """Set the outputs of masked heads to rows of means [heads, e], or to zeros for None."""
    for kind, layer, attention in model.attentions():
        own = None if means is None else means[model.grid.span(kind, layer)]
        attention.means = None if own is None else own.to(attention.output.weight)


def _rebuilt(model: Transformer, change: Callable[..., dict[str, Tensor]]) -> Transformer:
    """Return a model whose attention has the weights `change(kind, layer, module)`."""
    weights = dict(model.named_parameters())
    heads: dict[str, list[int]] = {kind: [] for kind in KINDS}
    names = {module: name for name, module in model.named_modules()}
    for kind, layer, attention in model.attentions():
        changed = change(kind, layer, attention)
        heads[kind].append(len(changed["inputs.bias"]) // (3 * attention.d_head))
        weights |= {f"{names[attention]}.{name}": weight for name, weight in changed.items()}
    width = {"heads": heads, "d_head": model.settings.head_width}
    settings = ModelSettings.model_validate({**model.settings.model_dump(), **width})
    joint = model.own_src_embedding is None
    sizes = model.src_embedding.num_embeddings, model.tgt_embedding.num_embeddings
    with torch.random.fork_rng(devices=[]):  # its weights are overwritten
        other = Transformer(settings, *sizes, joint)
    other = other.to(first_device(model), model.tgt_embedding.weight.dtype)
    copy_weights(other, weights)
    return other.train(model.training)


def restore_heads(model: Transformer, heads: Sequence[Head], count: int) -> Transformer:
    """Return a model with `count` heads in every layer: the heads of `model` and masked ones.

    `heads`: places of the heads of `model`, in flat order. After `remove_heads` the output has the
    same bits as under a mask of zeros and ones. Raises ValueError for impossible places.
    """
    if any(not 0 <= head.head < count for head in heads) or len(set(heads)) < model.grid.size:
        raise ValueError(f"expected {model.grid.size} places below {count}, found {heads}")

    def change(kind: str, layer: int, attention: MultiHeadAttention) -> dict[str, Tensor]:
        places = [head.head for head in heads if (head.kind, head.layer) == (kind, layer)]
        where = torch.tensor(places, dtype=torch.long, device=attention.inputs.weight.device)
        return _by_head(attention, partial(_filled, where=where, count=count))

    return _rebuilt(model, change)


def order_heads(model: Transformer, order: Sequence[int]) -> Transformer:
    """Return a model, the same function, whose heads stand in this order of flat positions.

    Raises ValueError unless every head stays in its layer.
    """
    spans = {(kind, layer): span for kind, layer, span in model.grid.layers()}
    for span in spans.values():
        if sorted(order[span]) != [*range(len(order))][span]:
            raise ValueError(f"expected an order within layers, found {list(order)}")

    def change(kind: str, layer: int, attention: MultiHeadAttention) -> dict[str, Tensor]:
        span = spans[kind, layer]
        places = [place - span.start for place in order[span]]
        return _by_head(attention, lambda by_head: by_head[:, places])

    return _rebuilt(model, change)


def _kept_weights(attention: MultiHeadAttention, gates: Tensor) -> dict[str, Tensor]:
    """Return weights of an attention module without the heads whose gate is 0."""
    kept = gates.nonzero().flatten()
    weights = _by_head(attention, lambda by_head: by_head[:, kept])
    columns = gates[kept].repeat_interleave(attention.d_head)
    weights["output.weight"] = weights["output.weight"] * columns.to(weights["output.weight"])
    if attention.means is not None:  # constant, so that the bias can hold it
        share = 1 - gates.to(attention.means.dtype)
        added = attention.output.weight @ (share[:, None] * attention.means).flatten()
        weights["output.bias"] = weights["output.bias"] + added
    return weights


def _by_head(
    attention: MultiHeadAttention, change: Callable[[Tensor], Tensor]
) -> dict[str, Tensor]:
    """Return weights of an attention module with their heads, dimension 1 of each, changed."""
    inputs, output = attention.inputs, attention.output
    shape = (3, attention.heads, attention.d_head)
    return {
        "inputs.weight": change(inputs.weight.unflatten(0, shape)).flatten(0, 2),
        "inputs.bias": change(inputs.bias.unflatten(0, shape)).flatten(),
        "output.weight": change(output.weight.unflatten(1, shape[1:])).flatten(1),
        "output.bias": output.bias,
    }


def _filled(by_head: Tensor, where: Tensor, count: int) -> Tensor:
    """Return weights of `count` heads, zeros but at the places of these heads in dimension 1."""
    zeros = by_head.new_zeros(len(by_head), count, *by_head.shape[2:])
    return zeros.index_copy_(1, where, by_head.detach())
