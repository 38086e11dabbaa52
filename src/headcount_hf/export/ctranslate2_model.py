"""Our model as a CTranslate2 model, the same function.

CTranslate2 wants one head count per side, and at least one head and layer. Zero rows in W_Q, W_K
and W_V and zero columns in W_O fill layers up that have fewer. Feed-forward layers may differ in
width. Zero units fill them up to a multiple of 16, because int8 on GPUs needs multiples of 4.

On x86 processors that are not Intel's, CTranslate2 takes oneDNN. Without AVX-512, oneDNN adds
products of int8 in 16 bits, which overflow (PyTorch's issue 136746), and translations are noise
without a warning. MKL was right on an AMD Zen 3. CTranslate2 reads the choice when it is imported.
"""

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from headcount.base.errors import EnvironmentFault, UserError, install, optional_package
from headcount.base.settings.decode import FP32
from headcount.data.vocabulary import BOS, EOS, UNK, Vocabulary
from headcount.model.attention import MultiHeadAttention, sinusoids
from headcount.model.layers import DecoderLayer, EncoderLayer, FeedForward, Residual
from headcount.model.transformer import Transformer

POSITIONS = 1024
"""Longest source and target, EOS counted, of a model with sinusoidal positions."""

FIRST_OF_LAST = (-1, 1)
"""Layer and number of heads whose attention CTranslate2 returns by default."""

_MULTIPLE = 16  # of feed-forward units
_ACTIVATIONS = {"relu": "RELU", "silu": "SWISH", "gelu": "GELU"}


def _is_narrow() -> bool:
    """Return True for an x86 processor without AVX-512."""
    capability = torch.backends.cpu.get_cpu_capability()
    return platform.machine() in ("x86_64", "AMD64") and not capability.startswith("AVX512")


def load_ctranslate2() -> ModuleType:
    """Return the package. Raises EnvironmentFault with the line that installs it."""
    if _is_narrow():
        os.environ.setdefault("CT2_USE_MKL", "1")
    return optional_package("ctranslate2", "CTranslate2 models", install("export"))


def load_for(compute_type: str, device: str = "cpu") -> ModuleType:
    """Return the package. Raises EnvironmentFault if it cannot compute in a number format here."""
    package = load_ctranslate2()
    supported = package.get_supported_compute_types(device)
    if compute_type not in supported:
        raise EnvironmentFault(
            f"compute_type: expected {', '.join(sorted(supported))}, the formats of CTranslate2 on "
            f"this {device.upper()}, found {compute_type}; take one of them"
        )
    if "int8" in compute_type and device == "cpu" and _is_narrow() and "int16" not in supported:
        raise EnvironmentFault(
            "int8: expected CTranslate2 to multiply by MKL on this processor without AVX-512, "
            "found oneDNN, whose int8 overflows; set CT2_USE_MKL=1, or take compute_type: float32"
        )
    return package


def export_shape(model: Transformer) -> tuple[int, int, int]:
    """Return heads of every encoder layer and every decoder layer, and positions, of an export."""
    counts = model.grid.counts
    decoder = max((1, *counts["dec_self"], *counts["dec_enc"]))
    return max((1, *counts["enc_self"])), decoder, model.settings.position_table or POSITIONS


def zero_units(model: Transformer) -> int:
    """Return the number of feed-forward units that an export adds as zeros."""
    widths = [width for layers in model.settings.ffn_widths.values() for width in layers]
    return sum(map(_filled_up, widths)) - sum(widths)


def export(
    model: Transformer,
    src_words: Vocabulary,
    tgt_words: Vocabulary,
    folder: Path,
    alignment: tuple[int, int] = FIRST_OF_LAST,
    compute_type: str = FP32,
) -> None:
    """Write a folder that `ctranslate2.Translator` loads. Its pieces have no EOS.

    `alignment`: decoder layer, and how many of its first heads CTranslate2 averages as attention.
    """
    specs, settings = load_ctranslate2().specs, model.settings
    shape = {
        "pre_norm": settings.norm == "pre",
        "head_dim": settings.head_width,
        "activation": getattr(specs.Activation, _ACTIVATIONS[settings.activation]),
        "layernorm_embedding": settings.embedding_norm,
    }
    heads, shown = export_shape(model), {"alignment_layer": alignment[0]}
    encoder, decoder = _layers(model)
    shown["alignment_heads"] = alignment[1]
    spec = specs.TransformerSpec(
        specs.TransformerEncoderSpec(len(encoder), heads[0], **shape),
        specs.TransformerDecoderSpec(len(decoder), heads[1], **shape, **shown),
    )
    spec.encoder.scale_embeddings = spec.decoder.scale_embeddings = settings.scale_embedding
    spec.config.layer_norm_epsilon = settings.norm_epsilon
    spec.config.add_source_eos = True
    spec.register_source_vocabulary(src_words.pieces(range(len(src_words))))
    spec.register_target_vocabulary(tgt_words.pieces(range(len(tgt_words))))
    bos, spec.config.eos_token, spec.config.unk_token = tgt_words.pieces((BOS, EOS, UNK))
    spec.config.bos_token = spec.config.decoder_start_token = bos
    with torch.no_grad():
        spec.encoder.embeddings[0].weight = model.src_embedding.weight
        spec.decoder.embeddings.weight = model.tgt_embedding.weight
        spec.decoder.projection.weight = model.tgt_embedding.weight
        if model.output_bias is not None:
            spec.decoder.projection.bias = model.output_bias
        for side, into in enumerate((spec.encoder, spec.decoder)):
            tables = model.position_tables
            waves = sinusoids(POSITIONS, settings.d_model)  # [p, d], as a table
            into.position_encodings.encodings = tables[side] if tables else waves
            if settings.embedding_norm:
                _fill_norm(into.layernorm_embedding, model.embedding_norms[side])
        _fill_side(spec.encoder, encoder, model.encoder_norm, heads[0])
        _fill_side(spec.decoder, decoder, model.decoder_norm, heads[1])
    spec.validate()
    spec.optimize(None if compute_type == FP32 else compute_type)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))


def _layers(model: Transformer) -> tuple[Sequence[nn.Module], Sequence[nn.Module]]:
    """Return the layers of both sides; in `pre` models an empty side gets one without effect."""
    settings, sides = model.settings, (model.encoder, model.decoder)
    if settings.norm == "post" and not all(map(len, sides)):
        raise UserError("CTranslate2: expected layers on both sides of a model with norm: post")
    encoder = list(model.encoder) or [EncoderLayer(settings, 0, 0)]
    return encoder, list(model.decoder) or [DecoderLayer(settings, 0, 0, 0, 0)]


def _fill_side(spec: Any, layers: Sequence[nn.Module], last_norm: nn.Module, heads: int) -> None:
    """Fill the layers, and the last norm of pre-norm models."""
    if isinstance(last_norm, nn.LayerNorm):
        _fill_norm(spec.layer_norm, last_norm)
    for into, layer in zip(spec.layer, layers, strict=True):
        _fill_attention(into.self_attention, layer.attention, layer.around_attention, heads)
        if isinstance(layer, DecoderLayer):
            _fill_attention(into.attention, layer.cross, layer.around_cross, heads)
        _fill_feed_forward(into.ffn, layer.feed_forward)
        _fill_norm(into.ffn.layer_norm, layer.around_feed_forward.norm)


def _fill_feed_forward(spec: Any, ours: FeedForward) -> None:
    """Fill both maps, with zero units up to a multiple."""
    inner, outer = ours.inner, ours.outer
    missing = _filled_up(len(inner.bias)) - len(inner.bias)
    spec.linear_0.weight = _with_zero_rows(inner.weight, missing)
    spec.linear_0.bias = _with_zero_rows(inner.bias, missing)
    spec.linear_1.weight = _with_zero_rows(outer.weight.T, missing).T.contiguous()
    spec.linear_1.bias = outer.bias


def _fill_attention(spec: Any, attention: MultiHeadAttention, around: Residual, heads: int) -> None:
    """Fill W_Q, W_K and W_V, in one matrix for self-attention, else W_Q alone."""
    missing = (heads - attention.heads) * attention.d_head
    parts = [slice(0, 3)] if len(spec.linear) == 2 else [slice(0, 1), slice(1, 3)]
    for linear, part in zip(spec.linear, parts, strict=False):
        for name in ("weight", "bias"):
            blocks = getattr(attention.inputs, name).chunk(3)[part]
            setattr(linear, name, torch.cat([_with_zero_rows(b, missing) for b in blocks]))
    spec.linear[-1].weight = _with_zero_rows(attention.output.weight.T, missing).T.contiguous()
    spec.linear[-1].bias = attention.output.bias
    _fill_norm(spec.layer_norm, around.norm)


def _filled_up(width: int) -> int:
    """Return the number of feed-forward units of a layer there: a multiple, and not 0."""
    return _MULTIPLE * max(1, -(-width // _MULTIPLE))


def _with_zero_rows(block: Tensor, rows: int) -> Tensor:
    return torch.cat((block, block.new_zeros(rows, *block.shape[1:])))


def _fill_norm(spec: Any, norm: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = norm.weight, norm.bias
