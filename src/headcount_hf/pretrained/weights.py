"""Weights of Hugging Face's encoder-decoders in our Transformer, and back.

`links` is the one table of corresponding weights, for both directions. Letters in shapes: v words
of theirs, w words of ours, d model width, p positions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from headcount.base.errors import UserError
from headcount.base.settings.model import ModelSettings
from headcount.data.vocabulary import BOS
from headcount.model.transformer import Transformer, copy_weights
from headcount_hf.pretrained.families import Config
from headcount_hf.pretrained.library import compute_sinusoids, open_whole

CLOSED = -1e3
"""Score of BOS, which is not one of their words. Its exp is 0, and the smoothed loss is finite."""

FIRST_POSITION = 2  # row of the first position in BART's tables
_SIDES = ("encoder", "decoder")
_BIAS = "final_logits_bias"
_PARTS = (
    ("attention.inputs", "self_attn.q_proj self_attn.k_proj self_attn.v_proj", 1, None),
    ("attention.output", "self_attn.out_proj", 0, 0),
    ("around_attention.norm", "self_attn_layer_norm", 0, 0),
    ("cross.inputs", "encoder_attn.q_proj encoder_attn.k_proj encoder_attn.v_proj", 1, None),
    ("cross.output", "encoder_attn.out_proj", 0, 0),
    ("around_cross.norm", "encoder_attn_layer_norm", 0, 0),
    ("feed_forward.inner", "fc1", 1, None),
    ("feed_forward.outer", "fc2", 0, 0),
    ("around_feed_forward.norm", "final_layer_norm", 0, 0),
)
"""Modules of a layer of our model, their modules that it stacks, and the axes of the model's width
in weight and bias, along which the order may differ."""

Link = tuple[str, list[str], int | None]
"""A weight of our model, their weights that it stacks, and the axis of the model's width."""


def links(config: Config) -> Iterator[Link]:
    """Yield every weight but embeddings, output bias and positions, whose rows differ."""
    for number, side in enumerate(_SIDES):
        if config.family.embedding_norm:
            norm = [f"model.{side}.layernorm_embedding"]
            yield from _weight_and_bias(f"embedding_norms.{number}", norm, 0, 0)
        if config.family.norm == "pre":
            yield from _weight_and_bias(f"{side}_norm", [f"model.{side}.layer_norm"], 0, 0)
        for layer in range(getattr(config, f"{side}_layers")):
            for ours, theirs, *axes in _PARTS:
                if side == "decoder" or "cross" not in ours:
                    names = [f"model.{side}.layers.{layer}.{name}" for name in theirs.split()]
                    yield from _weight_and_bias(f"{side}.{layer}.{ours}", names, *axes)


def _weight_and_bias(ours: str, theirs: list[str], *axes: int | None) -> Iterator[Link]:
    for part, axis in zip(("weight", "bias"), axes, strict=True):
        yield f"{ours}.{part}", [f"{name}.{part}" for name in theirs], axis


def width_order(config: Config) -> Tensor:
    """Return their column for every one of ours, [d]: Marian has all sines before all cosines."""
    width = torch.arange(config.d_model)
    halves = config.family.positions == "sinusoids"
    return width.view(2, -1).t().flatten() if halves else width


Rows = tuple[list[int], list[int]]
"""Their word for every id of ours, of source and target [w]."""


class Numbering(NamedTuple):
    """Rows of their embedding by our ids."""

    rows: Rows  # with PAD, BOS, EOS, UNK first
    joint: bool  # True if both sides have the same


@dataclass(frozen=True)
class Imported:
    """An imported model, their word for each of its ids, and the model of the library."""

    folder: Path
    model: Transformer
    src_rows: list[int]
    tgt_rows: list[int]
    theirs: nn.Module
    longest: int  # number of positions


def import_model(
    config: Config, numbering: Numbering, settings: ModelSettings | None = None
) -> Imported:
    """Return a model with the dropout of the settings. Raises UserError for one unlike ours."""
    folder, rows = config.folder, numbering.rows
    theirs = open_whole(folder)
    compute_sinusoids(folder, theirs)
    model = Transformer(settings or config.settings(), *map(len, rows), numbering.joint)
    weights = dict(_ours(theirs, config, *rows))
    if numbering.joint:
        del weights["own_src_embedding.weight"]
    copy_weights(model, weights)
    return Imported(folder, model.eval(), *rows, theirs, config.max_position_embeddings)


def number_words(
    config: Config, unknown: int, start: int | None = None, src_end: int | None = None
) -> Numbering:
    """Return our ids of their words.

    `unknown`: their id of unknown words. `start`, `src_end`: the first id of translations and the
    last id of sources, where they are not the config's. Our BOS is the start, even if that row is
    also a word (Marian's padding, NLLB's end), which then stands twice.
    """
    pad, end = config.pad_token_id, config.eos_token_id
    start = config.decoder_start_token_id if start is None else start
    src_end = end if src_end is None else src_end
    if start is None:
        raise UserError(f"{config.path}: decoder_start_token_id: expected an id, found none")
    if len({pad, end, unknown}) < 3:  # else a word's probability would count twice
        raise UserError(
            f"{config.path}: expected three ids, found {pad} as pad_token_id, {end} as the end and "
            f"{unknown} for unknown words"
        )
    rows = []
    for words, last in zip(config.vocabulary_sizes, (src_end, end), strict=True):
        taken = {pad, last, unknown}
        others = (row for row in range(words) if row not in taken)
        rows.append([pad, start, last, unknown, *others])
    # One id of ours cannot stand for two of theirs in one embedding.
    joint = config.share_encoder_decoder_embeddings and src_end == end
    return Numbering((rows[0], rows[1]), joint)


def _ours(
    theirs: nn.Module, config: Config, src_rows: list[int], tgt_rows: list[int]
) -> Iterator[tuple[str, Tensor]]:
    """Yield name and weight of every parameter of our model."""
    weights, order = theirs.state_dict(), width_order(config)
    src, tgt = (weights[_embedding(side)] for side in _SIDES)
    yield "own_src_embedding.weight", src[src_rows][:, order]
    yield "tgt_embedding.weight", tgt[tgt_rows][:, order]
    has_bias = config.family.output_bias
    bias = weights[_BIAS][0, tgt_rows] if has_bias else torch.zeros(len(tgt_rows))
    bias[BOS] = CLOSED
    yield "output_bias", bias
    first, last = config.pad_token_id + 1, config.max_position_embeddings
    for number, side in enumerate(_SIDES):
        module, name = getattr(theirs.model, side).embed_positions, f"position_tables.{number}"
        if config.family.positions == "table":
            yield name, module.weight[FIRST_POSITION:]
        elif config.family.positions == "shifted_sinusoids":
            waves = module.get_embedding(first + last, config.d_model, config.pad_token_id)
            yield name, waves[first:]
    for name, parts, axis in links(config):
        yield name, _reordered(torch.cat([weights[part] for part in parts]), axis, order)


@torch.no_grad()
def fill_theirs(
    theirs: nn.Module, model: Transformer, config: Config, ids: Sequence[Sequence[int]]
) -> None:
    """Copy our model into one of the library, with our id of each of their words."""
    into, ours = theirs.state_dict(), dict(model.named_parameters())
    order = width_order(config).argsort()
    into[_embedding("decoder")].copy_(model.tgt_embedding.weight[list(ids[1])][:, order])
    if not config.share_encoder_decoder_embeddings:
        into[_embedding("encoder")].copy_(model.src_embedding.weight[list(ids[0])][:, order])
    if config.family.output_bias:
        bias = torch.zeros(1) if model.output_bias is None else model.output_bias[list(ids[1])]
        into[_BIAS].copy_(bias)
    if config.family.positions == "table":
        for number, side in enumerate(_SIDES):
            table = ours[f"position_tables.{number}"]
            into[f"model.{side}.embed_positions.weight"][FIRST_POSITION:].copy_(table)
    for name, parts, axis in links(config):
        weight = _reordered(ours[name], axis, order)
        for part, rows in zip(parts, weight.chunk(len(parts)), strict=True):
            into[part].copy_(rows)


def _embedding(side: str) -> str:
    return f"model.{side}.embed_tokens.weight"


def _reordered(weight: Tensor, axis: int | None, order: Tensor) -> Tensor:
    """Return the weight with an axis in another order."""
    return weight if axis is None else weight.index_select(axis, order)
