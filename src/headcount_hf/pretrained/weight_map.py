"""Weights of Hugging Face's encoder-decoders as those of our Transformer, and back.

`links` is the one table of what stands where; both directions read it.

Letters in shapes: v words of theirs, w words of ours, d model width, p positions.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from headcount.base.errors import UserError
from headcount.data.vocabulary import BOS
from headcount.model.transformer import Transformer, copy_weights
from headcount.store.model_folder import check_shapes
from headcount_hf.pretrained.families import Config
from headcount_hf.pretrained.weights_file import (
    WEIGHTS,
    check_sinusoids,
    number_format,
    positions_name,
    read_weights,
    sinusoid_names,
    their_sinusoids,
)

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
    """Every weight but embeddings, biases of words and positions, whose rows are others in ours."""
    for number, side in enumerate(_SIDES):
        if config.family.embedding_norm:
            yield from _norm(f"embedding_norms.{number}", f"model.{side}.layernorm_embedding")
        if config.family.norm == "pre":
            yield from _norm(f"{side}_norm", f"model.{side}.layer_norm")
        for layer in range(config[f"{side}_layers"]):
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
    """W_Q, W_K and W_V in one matrix, and W_O."""
    parts = [f"{theirs}.{part}_proj" for part in "qkv"]
    yield Link(f"{ours}.inputs.weight", tuple(f"{part}.weight" for part in parts), 1)
    yield Link(f"{ours}.inputs.bias", tuple(f"{part}.bias" for part in parts))
    for part in ("weight", "bias"):
        yield Link(f"{ours}.output.{part}", (f"{theirs}.out_proj.{part}",), 0)


def _norm(ours: str, theirs: str) -> Iterator[Link]:
    for part in ("weight", "bias"):
        yield Link(f"{ours}.{part}", (f"{theirs}.{part}",), 0)


def width_order(config: Config) -> Tensor:
    """For each column of ours the one of theirs, [d].

    Sines in one half and cosines in the other: ours in another order of the width.
    """
    width = torch.arange(config["d_model"])
    halves = config.family.positions == "sinusoids"
    return width.view(2, -1).t().flatten() if halves else width


@dataclass(frozen=True)
class Numbering:
    """Which row of their embedding stands behind each of our ids."""

    src_rows: list[int]  # [w]; PAD, BOS, EOS, UNK first
    tgt_rows: list[int]
    joint: bool  # whether both sides have the same


@dataclass(frozen=True)
class Imported:
    """Our model, and which of their words stands behind each of its ids: see `Numbering`."""

    model: Transformer
    src_rows: list[int]
    tgt_rows: list[int]
    format: str  # that the weights were stored in, such as float16


def import_model(
    folder: Path, unknown: int, start: int | None = None, src_end: int | None = None
) -> Imported:
    """The model in a folder of Hugging Face's library, in evaluation mode.

    For `unknown`, `start` and `src_end` see `number_words`. Raises UserError for what our
    Transformer cannot express, and for weights that are missing or misshapen.
    """
    config = Config.read(folder)
    theirs = _Theirs(folder / WEIGHTS, config, read_weights(folder))
    numbering = number_words(config, unknown, start, src_end)
    rows = numbering.src_rows, numbering.tgt_rows
    model = Transformer(config.settings(), *map(len, rows), numbering.joint)
    weights = dict(theirs.ours(*rows))
    if not numbering.joint:
        weights["own_src_embedding.weight"] = theirs.embedding("encoder")[rows[0]][:, theirs.order]
    theirs.check_all_read()
    check_shapes(model, weights, theirs.path)
    copy_weights(model, weights)
    return Imported(model.eval(), *rows, theirs.format)


def number_words(
    config: Config, unknown: int, start: int | None = None, src_end: int | None = None
) -> Numbering:
    """Our ids of their words.

    `unknown`: the id that their tokenizer gives to words it does not know; `start`: the id that
    translations begin with, such as that of a language, where it is not the config's; `src_end`:
    the last id of a source, where it is not the end's. BOS is what their decoder begins with, which
    may be another's row as well (Marian: the padding's; NLLB: the end's): then that stands twice.
    """
    pad, end = config["pad_token_id"], config["eos_token_id"]
    start = config["decoder_start_token_id"] if start is None else start
    src_end = end if src_end is None else src_end
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


class _Theirs:
    """Their weights by name, read as ours."""

    def __init__(self, path: Path, config: Config, weights: dict[str, Tensor]):
        self.path, self.config = path, config
        self.format = ", ".join(sorted(set(map(number_format, weights.values()))))
        # Weights that were stored in half precision are computed with in fp32.
        self._weights = {name: weight.float() for name, weight in weights.items()}
        self.order = width_order(config)
        self._read = sinusoid_names(config) & weights.keys()
        for name in sorted(self._read):
            check_sinusoids(f"{path}: {name}", weights[name], config)

    def get(self, name: str) -> Tensor:
        """A weight. Raises UserError if it is not there."""
        if name not in self._weights:
            raise UserError(
                f"{self.path}: expected the weight {name}, found none, but such as "
                f"{min(self._weights, default='')}; save the whole model anew, by save_pretrained"
            )
        self._read.add(name)
        return self._weights[name]

    def check_all_read(self) -> None:
        """Raise UserError for weights that the config does not describe."""
        if unread := sorted(self._weights.keys() - self._read):
            raise UserError(
                f"{self.path}: expected the weights that {self.config.path} describes and no "
                f"others, found {len(unread)} more, the first of them {unread[0]}; these files "
                "are not of one model, so fetch both again"
            )

    def embedding(self, side: str) -> Tensor:
        """The embedding [v, d] of a side: the file has a shared one under one of several names."""
        names = embedding_names(self.config, side)
        found = self.get(next((name for name in names if name in self._weights), names[0]))
        expected = self.config.vocabulary_sizes[_SIDES.index(side)], len(self.order)
        if found.shape != expected:
            raise UserError(
                f"{self.path}: expected an embedding of shape {list(expected)}, as "
                f"{self.config.path} says, found {list(found.shape)}"
            )
        self._check_copies(names, found)
        return found

    def _check_copies(self, names: list[str], embedding: Tensor) -> None:
        """Raise UserError unless an embedding is the same under each of its names in the file."""
        if self.config.joint:
            names = [name for side in _SIDES for name in embedding_names(self.config, side)]
        names = [name for name in names if name in self._weights]
        for name in names:
            if not torch.equal(self.get(name), embedding):
                raise UserError(
                    f"{self.path}: {name}: expected a copy of {names[0]}, as both are one "
                    "weight in this family, found another; our model cannot tell them apart"
                )

    def ours(self, src_rows: list[int], tgt_rows: list[int]) -> Iterator[tuple[str, Tensor]]:
        """Name and weight of every parameter of ours but the source's own embedding."""
        yield "tgt_embedding.weight", self.embedding("decoder")[tgt_rows][:, self.order]
        bias = torch.zeros(len(tgt_rows))
        if self.config.family.output_bias:
            bias = self._bias()[0, tgt_rows]
        bias[BOS] = CLOSED
        yield "output_bias", bias
        if self.config.family.positions != "sinusoids":
            for number, side in enumerate(_SIDES):
                yield f"position_tables.{number}", self._positions(side)
        for link in links(self.config):
            weight = torch.cat([self.get(name) for name in link.theirs])
            yield link.ours, _turned(weight, link.width, self.order)

    def _bias(self) -> Tensor:
        """Return the bias of every word, [1, v]; the library's base class saves none."""
        expected = 1, self.config.vocabulary_sizes[1]
        if _BIAS not in self._weights:
            print(f"{self.path}: no {_BIAS}, read as zeros, as the library does", file=sys.stderr)
        found = self.get(_BIAS) if _BIAS in self._weights else torch.zeros(expected)
        if found.shape != expected:
            raise UserError(
                f"{self.path}: {_BIAS}: expected the shape {list(expected)}, as "
                f"{self.config.path} says, found {list(found.shape)}"
            )
        return found

    def _positions(self, side: str) -> Tensor:
        """The vectors [p, d] from the first position on."""
        count = self.config["max_position_embeddings"]
        if self.config.family.positions == "table":
            return self.get(positions_name(side))[FIRST_POSITION:]
        first = self.config["pad_token_id"] + 1
        return their_sinusoids(self.config, first + count)[first:]


def their_weights(
    model: Transformer, config: Config, src_ids: Sequence[int], tgt_ids: Sequence[int]
) -> dict[str, Tensor]:
    """The weights of our model under the names of their library, but for sinusoids.

    The model has the same number of heads in every layer, as `restore_heads` gives it. `src_ids`
    and `tgt_ids`: for each of their words the id that is ours.
    """
    weights = {name: weight.detach() for name, weight in model.named_parameters()}
    order = width_order(config).argsort()
    src, tgt = (each.weight.detach() for each in (model.src_embedding, model.tgt_embedding))
    found = {embedding_names(config, "decoder")[0]: tgt[list(tgt_ids)][:, order]}
    if not config.joint:
        found[embedding_names(config, "encoder")[0]] = src[list(src_ids)][:, order]
    if config.family.output_bias:
        bias = weights.get("output_bias", tgt.new_zeros(len(tgt)))
        found[_BIAS] = bias[list(tgt_ids)][None]
    if config.family.positions == "table":
        for number, side in enumerate(_SIDES):
            table = weights[f"position_tables.{number}"]
            unused = table.new_zeros(FIRST_POSITION, table.shape[1])
            found[positions_name(side)] = torch.cat((unused, table))
    for link in links(config):
        weight = _turned(weights[link.ours], link.width, order)
        found |= zip(link.theirs, weight.chunk(len(link.theirs)), strict=True)
    return found


def embedding_names(config: Config, side: str) -> list[str]:
    """Names that the embedding of a side may have, the one that their library writes first."""
    names = ["model.shared.weight"] if config.joint else []
    tied = ["lm_head.weight"] if config.joint or side == "decoder" else []
    return [*names, f"model.{side}.embed_tokens.weight", *tied]


def _turned(weight: Tensor, axis: int | None, order: Tensor) -> Tensor:
    """The weight, along an axis in another order."""
    return weight if axis is None else weight.index_select(axis, order)
