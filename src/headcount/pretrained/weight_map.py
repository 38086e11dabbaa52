"""Weights of Hugging Face's encoder-decoders as those of our Transformer.

Letters in shapes: v words of theirs, w words of ours, d model width, p positions.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from headcount.base.errors import UserError
from headcount.data.vocabulary import BOS
from headcount.model.transformer import Transformer, copy_weights
from headcount.pretrained.families import Config
from headcount.store.model_folder import check_shapes, load_weights

WEIGHTS = "model.safetensors"

CLOSED = -1e3
"""Score of BOS, which is no word of theirs: its exp is 0 beside any score. Not −∞: the smoothed
loss has the mean of all log-probabilities."""

_FIRST_POSITION = 2
"""Row of the first position in BART's tables; M2M100's sinusoids begin as far from zero."""

_SIDES = ("encoder", "decoder")

_NOT_READ = {
    "pytorch_model.bin": "a pickle can run code, so it is never read: load it where you trust it, "
    "and save it with save_pretrained",
    "model.safetensors.index.json": "save the parts as one, with save_pretrained and a larger "
    "max_shard_size",
}
"""Other files of weights, and what to do about them."""


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
    rows = []
    for words, last in zip(config.vocabulary_sizes, (src_end, end), strict=True):
        taken = {pad, last, unknown}
        others = (row for row in range(words) if row not in taken)
        rows.append([pad, start, last, unknown, *others])
    # One id of ours cannot stand for two of theirs in one embedding.
    return Numbering(*rows, joint=config.joint and src_end == end)


def weights_file(folder: Path) -> Path:
    """The one that holds a model's weights. Raises UserError where there are others or none."""
    path = folder / WEIGHTS
    if not path.exists():
        others = [name for name in _NOT_READ if (folder / name).exists()]
        advice = "".join(f"; {_NOT_READ[name]}" for name in others)
        found = " and ".join(others) or "none"
        raise UserError(f"{path}: expected a weights file, found {found}{advice}")
    return path


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The weights in a folder, by their own names and in the format that they are stored in.

    Raises UserError if they are missing, damaged, in several files, a pickle, or no fractions.
    """
    path = weights_file(folder)
    try:
        weights = load_weights(path)
    except UserError as fault:
        raise UserError(f"{fault}, or fetch it again") from fault
    for name, weight in weights.items():
        if not weight.is_floating_point():
            raise UserError(
                f"{path}: {name}: expected floating-point numbers, found {_format(weight)}; take "
                "the model before it was quantised"
            )
    return weights


def _format(weight: Tensor) -> str:
    """As float16."""
    return str(weight.dtype).removeprefix("torch.")


class _Theirs:
    """Their weights by name, read as ours."""

    def __init__(self, path: Path, config: Config, weights: dict[str, Tensor]):
        self.path, self.config = path, config
        self.format = ", ".join(sorted(set(map(_format, weights.values()))))
        # Weights that were stored in half precision are computed with in fp32.
        self._weights = {name: weight.float() for name, weight in weights.items()}
        width = torch.arange(config["d_model"])
        # Sines in one half and cosines in the other: ours in another order of the width.
        halves = config.family.positions == "sinusoids"
        self.order = width.view(2, -1).t().flatten() if halves else width

    def get(self, name: str) -> Tensor:
        """A weight. Raises UserError if it is not there."""
        if name not in self._weights:
            raise UserError(f"{self.path}: expected the weight {name}, found none")
        return self._weights[name]

    def embedding(self, side: str) -> Tensor:
        """The embedding [v, d] of a side: the file has a shared one under one of several names."""
        names = ["model.shared.weight"] if self.config.joint else []
        names += [f"model.{side}.embed_tokens.weight", "lm_head.weight"]
        found = self.get(next((name for name in names if name in self._weights), names[0]))
        expected = self.config.vocabulary_sizes[_SIDES.index(side)], len(self.order)
        if found.shape != expected:
            raise UserError(
                f"{self.path}: expected an embedding of shape {list(expected)}, as "
                f"{self.config.path} says, found {list(found.shape)}"
            )
        return found

    def ours(self, src_rows: list[int], tgt_rows: list[int]) -> Iterator[tuple[str, Tensor]]:
        """Name and weight of every parameter of ours but the source's own embedding."""
        order, family = self.order, self.config.family
        yield "tgt_embedding.weight", self.embedding("decoder")[tgt_rows][:, order]
        bias = torch.zeros(len(tgt_rows))
        if family.output_bias:
            bias = self.get("final_logits_bias")[0, tgt_rows]
        bias[BOS] = CLOSED
        yield "output_bias", bias
        for number, side in enumerate(_SIDES):
            if family.positions != "sinusoids":
                yield f"position_tables.{number}", self._positions(side)
            if family.embedding_norm:
                name = f"model.{side}.layernorm_embedding"
                yield from self._norm(name, f"embedding_norms.{number}")
            if family.norm == "pre":
                yield from self._norm(f"model.{side}.layer_norm", f"{side}_norm")
            for layer in range(self.config[f"{side}_layers"]):
                yield from self._layer(f"model.{side}.layers.{layer}", f"{side}.{layer}")

    def _layer(self, theirs: str, ours: str) -> Iterator[tuple[str, Tensor]]:
        yield from self._attention(f"{theirs}.self_attn", f"{ours}.attention")
        yield from self._norm(f"{theirs}.self_attn_layer_norm", f"{ours}.around_attention.norm")
        if ours.startswith("decoder"):
            yield from self._attention(f"{theirs}.encoder_attn", f"{ours}.cross")
            yield from self._norm(f"{theirs}.encoder_attn_layer_norm", f"{ours}.around_cross.norm")
        inner, outer = f"{ours}.feed_forward.inner", f"{ours}.feed_forward.outer"
        yield f"{inner}.weight", self.get(f"{theirs}.fc1.weight")[:, self.order]
        yield f"{inner}.bias", self.get(f"{theirs}.fc1.bias")
        yield f"{outer}.weight", self.get(f"{theirs}.fc2.weight")[self.order]
        yield f"{outer}.bias", self.get(f"{theirs}.fc2.bias")[self.order]
        yield from self._norm(f"{theirs}.final_layer_norm", f"{ours}.around_feed_forward.norm")

    def _attention(self, theirs: str, ours: str) -> Iterator[tuple[str, Tensor]]:
        """W_Q, W_K and W_V in one matrix, and W_O."""
        parts = [f"{theirs}.{part}_proj" for part in "qkv"]
        weights = [self.get(f"{part}.weight")[:, self.order] for part in parts]
        yield f"{ours}.inputs.weight", torch.cat(weights)
        yield f"{ours}.inputs.bias", torch.cat([self.get(f"{part}.bias") for part in parts])
        for part in ("weight", "bias"):
            yield f"{ours}.output.{part}", self.get(f"{theirs}.out_proj.{part}")[self.order]

    def _norm(self, theirs: str, ours: str) -> Iterator[tuple[str, Tensor]]:
        for part in ("weight", "bias"):
            yield f"{ours}.{part}", self.get(f"{theirs}.{part}")[self.order]

    def _positions(self, side: str) -> Tensor:
        """The vectors [p, d] from the first position on."""
        count = self.config["max_position_embeddings"]
        if self.config.family.positions == "table":
            return self.get(f"model.{side}.embed_positions.weight")[_FIRST_POSITION:]
        half = self.config["d_model"] // 2
        rates = torch.exp(torch.arange(half) * (-math.log(10000) / (half - 1)))
        first = self.config["pad_token_id"] + 1
        angles = torch.arange(first, first + count)[:, None] * rates
        return torch.cat((angles.sin(), angles.cos()), 1)
