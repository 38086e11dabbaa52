"""Removal of units: smaller matrices with the output of a mask. Restoring and ordering heads."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from headcount.base.addresses import FEED_FORWARD, KINDS, LAYERS, Head
from headcount.base.settings.model import ModelSettings
from headcount.model.attention import MultiHeadAttention
from headcount.model.layers import FeedForward
from headcount.model.transformer import Transformer, copy_weights, first_device


def remove_units(model: Transformer, multiplier: Tensor) -> Transformer:
    """Return a new model without the units whose multiplier, [units] in flat order, is 0.

    The model's grid says which units there are. Other multipliers are folded into the columns of
    W_O and of the second feed-forward map, and the `means` of a module into its bias. Up to
    rounding the output is the same as under the multiplier. Raises ValueError for a multiplier of
    another shape, and for one of a layer that is neither 0 nor 1, which no weight can hold.
    """
    if multiplier.shape != (model.grid.size,):
        raise ValueError(f"expected [{model.grid.size}], found {list(multiplier.shape)}")
    multiplier = multiplier.detach().to(first_device(model))

    def change(kind: str, layer: int, module: nn.Module) -> dict[str, Tensor]:
        if kind not in model.grid.counts:
            return {}
        kept = _kept_units if kind in FEED_FORWARD else _kept_weights
        return kept(module, model.part(multiplier, kind, layer))

    return _rebuilt(model, change, [_kept_layers(model, multiplier, kind) for kind in LAYERS])


def _kept_layers(model: Transformer, multiplier: Tensor, kind: str) -> list[int]:
    """Return the numbers of the layers of one side whose multiplier is not 0."""
    layers = range(len(model.encoder if kind == "enc_layer" else model.decoder))
    if kind not in model.grid.counts:
        return [*layers]
    shares = [model.part(multiplier, kind, layer).item() for layer in layers]
    if not {0.0, 1.0}.issuperset(shares):
        raise ValueError(f"{kind}: expected multipliers 0 or 1, found {shares}")
    return [layer for layer in layers if shares[layer]]


def set_means(model: Transformer, means: Tensor | None) -> None:
    """Set the outputs of masked heads to rows of means [heads, e], or to zeros for None."""
    for kind, layer, attention in model.attentions():
        own = None if means is None else means[model.grid.span(kind, layer)]
        attention.means = None if own is None else own.to(attention.output.weight)


def _rebuilt(
    model: Transformer,
    change: Callable[..., dict[str, Tensor]],
    layers: Sequence[Sequence[int]] | None = None,
) -> Transformer:
    """Return a model of the `layers` with these numbers, by default all, with changed weights."""
    every = range(len(model.encoder)), range(len(model.decoder))
    places = dict(zip(("encoder", "decoder"), layers or every, strict=True))
    weights = dict(model.named_parameters())
    names = {module: name for name, module in model.named_modules()}
    sizes: dict[str, list[int]] = {kind: [] for kind in (*KINDS, *FEED_FORWARD)}
    for kind, layer, module in (*model.attentions(), *feed_forwards(model)):
        changed = change(kind, layer, module)
        weights |= {f"{names[module]}.{name}": weight for name, weight in changed.items()}
        if layer in places["encoder" if kind.startswith("enc") else "decoder"]:
            per_unit = 1 if kind in FEED_FORWARD else 3 * module.d_head
            bias = "inner.bias" if kind in FEED_FORWARD else "inputs.bias"
            sizes[kind].append(len(weights[f"{names[module]}.{bias}"]) // per_unit)
    settings = _resized(model.settings, sizes, {side: len(n) for side, n in places.items()})
    joint = model.own_src_embedding is None
    words = model.src_embedding.num_embeddings, model.tgt_embedding.num_embeddings
    with torch.random.fork_rng(devices=[]):  # its weights are overwritten
        other = Transformer(settings, *words, joint)
    other = other.to(first_device(model), model.tgt_embedding.weight.dtype)
    copy_weights(other, _renumbered(weights, places))
    return other.train(model.training)


def _resized(
    settings: ModelSettings, sizes: dict[str, list[int]], layers: dict[str, int]
) -> ModelSettings:
    """Return settings with these heads and feed-forward units by layer, and numbers of layers."""
    heads = {kind: sizes[kind] for kind in KINDS}
    widths = {kind: sizes[kind] for kind in FEED_FORWARD}
    changed = {"heads": heads, "d_head": settings.head_width}
    if isinstance(settings.d_ff, dict) or {settings.d_ff}.union(*widths.values()) != {
        settings.d_ff
    }:
        changed["d_ff"] = widths
    changed |= {f"{side}_layers": number for side, number in layers.items()}
    return ModelSettings.model_validate({**settings.model_dump(), **changed})


def _renumbered(
    weights: dict[str, Tensor], places: Mapping[str, Sequence[int]]
) -> dict[str, Tensor]:
    """Return weights by name, of the layers with these numbers alone, which count from 0."""
    named = {}
    for name, weight in weights.items():
        part, *rest = name.split(".")
        if part in places and int(rest[0]) in places[part]:
            named[".".join([part, str(places[part].index(int(rest[0]))), *rest[1:]])] = weight
        elif part not in places:
            named[name] = weight
    return named


def feed_forwards(model: Transformer) -> Iterator[tuple[str, int, FeedForward]]:
    """Yield kind, layer and module of every feed-forward layer, in the flat order of its units."""
    for kind, layers in zip(FEED_FORWARD, (model.encoder, model.decoder), strict=True):
        yield from ((kind, number, layer.feed_forward) for number, layer in enumerate(layers))


def restore_heads(model: Transformer, heads: Sequence[Head], count: int) -> Transformer:
    """Return a model with `count` heads in every layer: the heads of `model` and masked ones.

    `heads`: places of the heads of `model`, in flat order. After `remove_units` the output has the
    same bits as under a mask of zeros and ones. Raises ValueError for impossible places.
    """
    if any(not 0 <= head.head < count for head in heads) or len(set(heads)) < model.grid.size:
        raise ValueError(f"expected {model.grid.size} places below {count}, found {heads}")

    def change(kind: str, layer: int, attention: nn.Module) -> dict[str, Tensor]:
        if kind in FEED_FORWARD:
            return {}
        places = [head.head for head in heads if (head.kind, head.layer) == (kind, layer)]
        where = torch.tensor(places, dtype=torch.long, device=attention.inputs.weight.device)
        return _by_head(attention, partial(_filled, where=where, count=count))

    return _rebuilt(model, change)


def order_heads(model: Transformer, order: Sequence[int]) -> Transformer:
    """Return a model, the same function, whose heads stand in this order of flat positions."""
    spans = {(kind, layer): span for kind, layer, span in model.grid.layers()}
    for span in spans.values():
        if sorted(order[span]) != [*range(len(order))][span]:
            raise ValueError(f"expected an order within layers, found {list(order)}")

    def change(kind: str, layer: int, attention: nn.Module) -> dict[str, Tensor]:
        if kind in FEED_FORWARD:
            return {}
        span = spans[kind, layer]
        places = [place - span.start for place in order[span]]
        return _by_head(attention, lambda by_head: by_head[:, places])

    return _rebuilt(model, change)


def widen(model: Transformer, widths: Mapping[str, Sequence[int]]) -> Transformer:
    """Return the same function with as many feed-forward units by side and layer, new ones 0."""

    def change(kind: str, layer: int, module: nn.Module) -> dict[str, Tensor]:
        if kind not in FEED_FORWARD:
            return {}
        missing = widths[kind][layer] - len(module.inner.bias)
        return {
            "inner.weight": functional.pad(module.inner.weight, (0, 0, 0, missing)),
            "inner.bias": functional.pad(module.inner.bias, (0, missing)),
            "outer.weight": functional.pad(module.outer.weight, (0, missing)),
        }

    return _rebuilt(model, change)


def _kept_units(module: FeedForward, gates: Tensor) -> dict[str, Tensor]:
    """Return weights of a feed-forward module without the units whose gate is 0."""
    kept = gates.nonzero().flatten()
    columns = module.outer.weight[:, kept]
    return {
        "inner.weight": module.inner.weight[kept],
        "inner.bias": module.inner.bias[kept],
        "outer.weight": columns * gates[kept].to(columns),
    }


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
