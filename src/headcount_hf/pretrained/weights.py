"""Weights of Hugging Face's encoder-decoders as those of our Transformer, and back.

`links` is the one table of what stands where; both directions read it.

Letters in shapes: v words of theirs, w words of ours, d model width, p positions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from headcount.base.errors import UserError
from headcount.data.vocabulary import BOS
from headcount.model.transformer import Transformer, copy_weights
from headcount.store.model_folder import check_shapes
from headcount_hf.pretrained.families import Config
from headcount_hf.pretrained.library import compute_sinusoids, open_whole, stored_formats

CLOSED = -1e3
"""Score of BOS, which is no word of theirs: its exp is 0 beside any score. Not −∞: the smoothed
loss has the mean of all log-probabilities."""

FIRST_POSITION = 2
"""Row of the first position in BART's tables; M2M100's sinusoids begin as far from zero."""

_SIDES = ("encoder", "decoder")
_BIAS = "final_logits_bias"


@dataclass(frozen=True)
class Link:
    """A weight of ours, and those of theirs that stand in it below each other."""

    ours: str
    theirs: tuple[str, ...]
    width: int | None = None  # the axis that is the model's width, whose order may be another


def links(config: Config) -> Iterator[Link]:
    """Give every weight but embeddings, biases of words and positions, whose rows differ."""
    for number, side in enumerate(_SIDES):
        if config.family.embedding_norm:
            yield from _norm(f"embedding_norms.{number}", f"model.{side}.layernorm_embedding")
        if config.family.norm == "pre":
            yield from _norm(f"{side}_norm", f"model.{side}.layer_norm")
        for layer in range(getattr(config, f"{side}_layers")):
            yield from _layer(f"{side}.{layer}", f"model.{side}.layers.{layer}")


def _layer(ours: str, theirs: str) -> Iterator[Link]:
    yield from _attention(f"{ours}.attention", f"{theirs}.self_attn")
    yield from _norm(f"{ours}.around_attention.norm", f"{theirs}.self_attn_layer_norm")
    if ours.startswith("decoder"):
        yield from _attention(f"{ours}.cross", f"{theirs}.encoder_attn")
        yield from _norm(f"{ours}.around_cross.norm", f"{theirs}.encoder_attn_layer_norm")
    inner, outer = f"{ours}.feed_forward.inner", f"{ours}.feed_forward.outer"
    yield Link(f"{inner}.weight", (f"{theirs}.fc1.weight",), 1)
    yield Link(f"{inner}.bias", (f"{theirs}.fc1.bias",))
    yield Link(f"{outer}.weight", (f"{theirs}.fc2.weight",), 0)
    yield Link(f"{outer}.bias", (f"{theirs}.fc2.bias",), 0)
    yield from _norm(f"{ours}.around_feed_forward.norm", f"{theirs}.final_layer_norm")


def _attention(ours: str, theirs: str) -> Iterator[Link]:
    """Give W_Q, W_K and W_V in one matrix, and W_O."""
    parts = [f"{theirs}.{part}_proj" for part in "qkv"]
    yield Link(f"{ours}.inputs.weight", tuple(f"{part}.weight" for part in parts), 1)
    yield Link(f"{ours}.inputs.bias", tuple(f"{part}.bias" for part in parts))
    for part in ("weight", "bias"):
        yield Link(f"{ours}.output.{part}", (f"{theirs}.out_proj.{part}",), 0)


def _norm(ours: str, theirs: str) -> Iterator[Link]:
    for part in ("weight", "bias"):
        yield Link(f"{ours}.{part}", (f"{theirs}.{part}",), 0)


def width_order(config: Config) -> Tensor:
    """Return for each column of ours the one of theirs, [d].

    Sines in one half and cosines in the other: ours in another order of the width.
    """
    width = torch.arange(config.d_model)
    halves = config.family.positions == "sinusoids"
    return width.view(2, -1).t().flatten() if halves else width


@dataclass(frozen=True)
class Numbering:
    """Rows of their embedding by our ids."""

    src_rows: list[int]  # [w]; PAD, BOS, EOS, UNK first
    tgt_rows: list[int]
    joint: bool  # whether both sides have the same


@dataclass(frozen=True)
class Imported:
    """Our model, which of their words stands behind each of its ids, and their own model."""

    folder: Path
    model: Transformer
    src_rows: list[int]
    tgt_rows: list[int]
    format: str  # that the weights were stored in, such as float16
    theirs: nn.Module
    longest: int  # positions that the model knows
    tokeniser: Any = None  # theirs, told the languages


def import_model(
    folder: Path, unknown: int, start: int | None = None, src_end: int | None = None
) -> Imported:
    """Return the model in a folder of Hugging Face's library, in evaluation mode.

    For `unknown`, `start` and `src_end` see `number_words`. Raises UserError for what our
    Transformer cannot express, and for weights that are missing or misshapen.
    """
    config = Config.read(folder)
    numbering = number_words(config, unknown, start, src_end)
    rows = numbering.src_rows, numbering.tgt_rows
    theirs = open_whole(folder)
    compute_sinusoids(folder, theirs)
    model = Transformer(config.settings(), *map(len, rows), numbering.joint)
    weights = dict(_ours(theirs, config, *rows))
    if numbering.joint:
        del weights["own_src_embedding.weight"]
    check_shapes(model, weights, folder)
    copy_weights(model, weights)
    stored = ", ".join(sorted({*stored_formats(folder).values()}))
    longest = config.max_position_embeddings
    return Imported(folder, model.eval(), *rows, stored, theirs, longest)


def number_words(
    config: Config, unknown: int, start: int | None = None, src_end: int | None = None
) -> Numbering:
    """Return our ids of their words.

    `unknown`: the id that their tokenizer gives to words it does not know; `start`: the id that
    translations begin with, such as that of a language, where it is not the config's; `src_end`:
    the last id of a source, where it is not the end's. BOS is what their decoder begins with, which
    may be another's row as well (Marian: the padding's; NLLB: the end's): then that stands twice.
    """
    pad, end = config.pad_token_id, config.eos_token_id
    start = config.decoder_start_token_id if start is None else start
    src_end = end if src_end is None else src_end
    if start is None:
        raise UserError(f"{config.path}: decoder_start_token_id: expected an id, found none")
    if len({pad, end, unknown}) < 3:  # else a word would be there twice, and so its probability
        raise UserError(
            f"{config.path}: expected three ids, found {pad} as pad_token_id, {end} as the end's "
            f"and {unknown} as that of unknown words; our model cannot tell them apart"
        )
    rows = []
    for words, last in zip(config.vocabulary_sizes, (src_end, end), strict=True):
        taken = {pad, last, unknown}
        others = (row for row in range(words) if row not in taken)
        rows.append([pad, start, last, unknown, *others])
    # One id of ours cannot stand for two of theirs in one embedding.
    return Numbering(*rows, joint=config.joint and src_end == end)


def _ours(
    theirs: nn.Module, config: Config, src_rows: list[int], tgt_rows: list[int]
) -> Iterator[tuple[str, Tensor]]:
    """Give name and weight of every parameter of ours."""
    weights, order = theirs.state_dict(), width_order(config)
    src, tgt = (weights[_embedding(side)] for side in _SIDES)
    yield "own_src_embedding.weight", src[src_rows][:, order]
    yield "tgt_embedding.weight", tgt[tgt_rows][:, order]
    bias = torch.zeros(len(tgt_rows))
    if config.family.output_bias:
        bias = weights[_BIAS][0, tgt_rows]
    bias[BOS] = CLOSED
    yield "output_bias", bias
    if config.family.positions != "sinusoids":
        for number, side in enumerate(_SIDES):
            yield f"position_tables.{number}", _positions(theirs, config, side)
    for link in links(config):
        weight = torch.cat([weights[name] for name in link.theirs])
        yield link.ours, _turned(weight, link.width, order)


def _positions(theirs: nn.Module, config: Config, side: str) -> Tensor:
    """Return the vectors [p, d] from the first position on."""
    module, count = getattr(theirs.model, side).embed_positions, config.max_position_embeddings
    if config.family.positions == "table":
        return module.weight[FIRST_POSITION:]
    first = config.pad_token_id + 1
    return module.get_embedding(first + count, config.d_model, config.pad_token_id)[first:]


@torch.no_grad()
def fill_theirs(
    theirs: nn.Module,
    model: Transformer,
    config: Config,
    src_ids: Sequence[int],
    tgt_ids: Sequence[int],
) -> None:
    """Copy the weights of our model into a model of their library; sinusoids are theirs.

    Ours has the same number of heads in every layer, as `restore_heads` gives it. `src_ids` and
    `tgt_ids`: for each of their words the id that is ours.
    """
    into, ours = theirs.state_dict(), dict(model.named_parameters())
    order = width_order(config).argsort()
    into[_embedding("decoder")].copy_(model.tgt_embedding.weight[list(tgt_ids)][:, order])
    if not config.joint:
        into[_embedding("encoder")].copy_(model.src_embedding.weight[list(src_ids)][:, order])
    if config.family.output_bias:
        bias = torch.zeros(1) if model.output_bias is None else model.output_bias[list(tgt_ids)]
        into[_BIAS].copy_(bias)
    if config.family.positions == "table":
        for number, side in enumerate(_SIDES):
            table = ours[f"position_tables.{number}"]
            into[f"model.{side}.embed_positions.weight"][FIRST_POSITION:].copy_(table)
    for link in links(config):
        weight = _turned(ours[link.ours], link.width, order)
        for name, part in zip(link.theirs, weight.chunk(len(link.theirs)), strict=True):
            into[name].copy_(part)


def _embedding(side: str) -> str:
    return f"model.{side}.embed_tokens.weight"


def _turned(weight: Tensor, axis: int | None, order: Tensor) -> Tensor:
    """Return the weight, along an axis in another order."""
    return weight if axis is None else weight.index_select(axis, order)
