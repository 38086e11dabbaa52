"""Our model as a CTranslate2 model, the same function.

CTranslate2 wants one head count per side, and at least one head. Zero rows in W_Q, W_K and W_V and
zero columns in W_O fill layers up that have fewer.

On x86 processors that are not Intel's, CTranslate2 takes oneDNN. Without VNNI, which comes with
AVX-512 there, oneDNN adds products of int8 in 16 bits, which overflow (PyTorch's issue 136746), and
translations are noise without a warning. MKL was right on an AMD Zen 3. CTranslate2 reads the
choice when it is imported, so this module makes it before.
"""

import os
import platform
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from headcount.base.errors import EnvironmentFault, optional_package
from headcount.data.vocabulary import BOS, EOS, UNK, Vocabulary
from headcount.model.attention import MultiHeadAttention, sinusoids
from headcount.model.layers import DecoderLayer, Residual
from headcount.model.transformer import Transformer

POSITIONS = 1024
"""Longest source and target, EOS counted, of a model with sinusoidal positions."""

_ACTIVATIONS = {"relu": "RELU", "silu": "SWISH", "gelu": "GELU"}


def _is_narrow() -> bool:
    """Return True for an x86 processor without AVX-512."""
    capability = torch.backends.cpu.get_cpu_capability()
    return platform.machine() in ("x86_64", "AMD64") and not capability.startswith("AVX512")


if _is_narrow():
    os.environ.setdefault("CT2_USE_MKL", "1")


def load_ctranslate2() -> ModuleType:
    """Return the package. Raises EnvironmentFault with the line that installs it."""
    return optional_package("ctranslate2", "CTranslate2 models", "run: pip install -e '.[export]'")


def refuse_overflow(package: ModuleType) -> None:
    """Raise EnvironmentFault if its int8 would overflow: on x86 CPUs, only MKL offers int16."""
    if _is_narrow() and "int16" not in package.get_supported_compute_types("cpu"):
        raise EnvironmentFault(
            "int8: expected CTranslate2 to multiply by MKL on this processor without AVX-512, "
            "found oneDNN, whose int8 overflows; set CT2_USE_MKL=1, or take engine ctranslate2"
        )


def positions_of(model: Transformer) -> int:
    """Return the number of positions in an export of the model."""
    return model.settings.position_table or POSITIONS


def padded_heads(model: Transformer) -> tuple[int, int]:
    """Return the heads of every layer of the encoder, and of the decoder, in CTranslate2."""
    counts = model.grid.counts
    return max(1, *counts["enc_self"]), max(1, *counts["dec_self"], *counts["dec_enc"])


def export(model: Transformer, src_words: Vocabulary, tgt_words: Vocabulary, folder: Path) -> None:
    """Write a folder in fp32 that `ctranslate2.Translator` loads. Its pieces have no EOS."""
    specs, settings = load_ctranslate2().specs, model.settings
    shape = {
        "pre_norm": settings.norm == "pre",
        "head_dim": settings.head_width,
        "activation": getattr(specs.Activation, _ACTIVATIONS[settings.activation]),
        "layernorm_embedding": settings.embedding_norm,
    }
    heads = padded_heads(model)
    spec = specs.TransformerSpec(
        specs.TransformerEncoderSpec(len(model.encoder), heads[0], **shape),
        specs.TransformerDecoderSpec(len(model.decoder), heads[1], **shape),
    )
    spec.encoder.scale_embeddings = spec.decoder.scale_embeddings = settings.scale_embedding
    spec.config.layer_norm_epsilon = settings.norm_epsilon
    _describe_vocabularies(spec, src_words, tgt_words)
    with torch.no_grad():
        spec.encoder.embeddings[0].weight = model.src_embedding.weight
        spec.decoder.embeddings.weight = model.tgt_embedding.weight
        spec.decoder.projection.weight = model.tgt_embedding.weight
        if model.output_bias is not None:
            spec.decoder.projection.bias = model.output_bias
        for side, into in enumerate((spec.encoder, spec.decoder)):
            into.position_encodings.encodings = _positions(model, side)
            if settings.embedding_norm:
                _fill_norm(into.layernorm_embedding, model.embedding_norms[side])
        _fill_side(spec.encoder, model.encoder, model.encoder_norm, heads[0])
        _fill_side(spec.decoder, model.decoder, model.decoder_norm, heads[1])
    spec.validate()
    spec.optimize()
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))


def _describe_vocabularies(spec: Any, src_words: Vocabulary, tgt_words: Vocabulary) -> None:
    spec.register_source_vocabulary(src_words.pieces(range(len(src_words))))
    spec.register_target_vocabulary(tgt_words.pieces(range(len(tgt_words))))
    bos, eos, unk = tgt_words.pieces((BOS, EOS, UNK))
    spec.config.bos_token = spec.config.decoder_start_token = bos
    spec.config.eos_token = eos
    spec.config.unk_token = unk
    spec.config.add_source_eos = True


def _positions(model: Transformer, side: int) -> Tensor:
    """Return the position vectors of a side, [p, d]: its table, or sinusoids."""
    if model.position_tables:
        return model.position_tables[side]
    return sinusoids(POSITIONS, model.settings.d_model)


def _fill_side(spec: Any, layers: nn.ModuleList, last_norm: nn.Module, heads: int) -> None:
    """Fill the layers, and the last norm of pre-norm models."""
    if isinstance(last_norm, nn.LayerNorm):
        _fill_norm(spec.layer_norm, last_norm)
    for into, layer in zip(spec.layer, layers, strict=True):
        _fill_attention(into.self_attention, layer.attention, layer.around_attention, heads)
        if isinstance(layer, DecoderLayer):
            _fill_attention(into.attention, layer.cross, layer.around_cross, heads)
        inner, outer = layer.feed_forward.inner, layer.feed_forward.outer
        for linear, ours in ((into.ffn.linear_0, inner), (into.ffn.linear_1, outer)):
            linear.weight, linear.bias = ours.weight, ours.bias
        _fill_norm(into.ffn.layer_norm, layer.around_feed_forward.norm)


def _fill_attention(spec: Any, attention: MultiHeadAttention, around: Residual, heads: int) -> None:
    """Fill W_Q, W_K and W_V, in one matrix for self-attention, else W_Q alone."""
    missing = (heads - attention.heads) * attention.d_head
    weights = [_with_zero_rows(part, missing) for part in attention.inputs.weight.chunk(3)]
    biases = [_with_zero_rows(part, missing) for part in attention.inputs.bias.chunk(3)]
    parts = [slice(0, 3)] if len(spec.linear) == 2 else [slice(0, 1), slice(1, 3)]
    for linear, part in zip(spec.linear, parts, strict=False):
        linear.weight, linear.bias = torch.cat(weights[part]), torch.cat(biases[part])
    spec.linear[-1].weight = _with_zero_rows(attention.output.weight.T, missing).T.contiguous()
    spec.linear[-1].bias = attention.output.bias
    _fill_norm(spec.layer_norm, around.norm)


def _fill_norm(spec: Any, norm: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = norm.weight, norm.bias


def _with_zero_rows(block: Tensor, rows: int) -> Tensor:
    return torch.cat((block, block.new_zeros(rows, *block.shape[1:])))
