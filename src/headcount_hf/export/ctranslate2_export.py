"""Our model as a CTranslate2 model: the same function, computed by its C++ engine.

CTranslate2 wants one head count per side, and at least one head. A layer with fewer gets silent
ones: zero rows in W_Q, W_K and W_V, zero columns in W_O.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from headcount.data.vocabulary import BOS, EOS, UNK, Vocabulary
from headcount.model.attention import MultiHeadAttention, sinusoids
from headcount.model.layers import DecoderLayer, Residual
from headcount.model.transformer import Transformer
from headcount_hf.export.ctranslate2_package import load_ctranslate2

POSITIONS = 1024
"""Longest source and target, EOS counted, of a model that knows any position."""

_ACTIVATIONS = {"relu": "RELU", "silu": "SWISH", "gelu": "GELU"}


def positions_of(model: Transformer) -> int:
    """Return how many positions an export of the model knows."""
    return model.settings.position_table or POSITIONS


def padded_heads(model: Transformer) -> tuple[int, int]:
    """Return the heads of every layer of the encoder, and of the decoder, in CTranslate2."""
    counts = model.grid.counts
    return max(1, *counts["enc_self"]), max(1, *counts["dec_self"], *counts["dec_enc"])


def export(model: Transformer, src_words: Vocabulary, tgt_words: Vocabulary, folder: Path) -> None:
    """Write a folder that `ctranslate2.Translator` loads; fp32, quantised when it is loaded.

    The translator wants pieces without EOS, and gives such pieces.
    """
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
    """Return the vectors of positions of a side, [p, d]: its table, or as many sinusoids."""
    if model.position_tables:
        return model.position_tables[side]
    return sinusoids(POSITIONS, model.settings.d_model)


def _fill_side(spec: Any, layers: nn.ModuleList, last_norm: nn.Module, heads: int) -> None:
    """Fill layers, and the last norm: an identity in post-norm models, which have none."""
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
    """Fill W_Q, W_K and W_V in one matrix for self-attention, else W_Q apart from the others."""
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
