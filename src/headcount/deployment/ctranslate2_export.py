"""Our model as a CTranslate2 model: the same function, computed by its C++ engine.

CTranslate2 wants one head count per side, and at least one head. A layer with fewer gets silent
ones: zero rows in W_Q, W_K and W_V, zero columns in W_O. A head multiplier is folded into W_O.
"""

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from headcount.base.errors import EnvironmentFault
from headcount.data.vocabulary import BOS, EOS, UNK, Vocabulary
from headcount.model.attention import MultiHeadAttention, sinusoids
from headcount.model.layers import NORM_EPSILON, FeedForward
from headcount.model.transformer import Transformer, check_multiplier

POSITIONS = 1024
"""Longest source and target, EOS counted."""


def load_ctranslate2() -> ModuleType:
    """The package; raises EnvironmentFault with the line that installs it where it lacks."""
    try:
        return importlib.import_module("ctranslate2")
    except ModuleNotFoundError as fault:
        if fault.name != "ctranslate2":
            raise
        raise EnvironmentFault(
            "export needs the package ctranslate2, which is not installed; "
            "run: pip install -e '.[export]'"
        ) from fault


def padded_heads(model: Transformer) -> tuple[int, int]:
    """Heads that every layer of the encoder, and of the decoder, has in CTranslate2's model."""
    counts = model.grid.counts
    return max(1, *counts["enc_self"]), max(1, *counts["dec_self"], *counts["dec_enc"])


def export(
    model: Transformer,
    src_words: Vocabulary,
    tgt_words: Vocabulary,
    folder: Path,
    multiplier: Tensor | None = None,
) -> None:
    """Write a folder that `ctranslate2.Translator` loads; fp32, quantised when it is loaded.

    `multiplier` is flat, [heads]. The translator wants pieces without EOS, and gives such pieces.
    """
    check_multiplier(model, multiplier, -1)  # one row per sentence cannot be folded
    specs = load_ctranslate2().specs
    shape = {"pre_norm": model.settings.norm == "pre", "head_dim": model.settings.head_width}
    heads = padded_heads(model)
    spec = specs.TransformerSpec(
        specs.TransformerEncoderSpec(len(model.encoder), heads[0], **shape),
        specs.TransformerDecoderSpec(len(model.decoder), heads[1], **shape),
    )
    _describe_vocabularies(spec, src_words, tgt_words)
    with torch.no_grad():
        _fill_encoder(spec.encoder, model, heads[0], multiplier)
        _fill_decoder(spec.decoder, model, heads[1], multiplier)
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
    spec.config.layer_norm_epsilon = NORM_EPSILON


def _fill_encoder(spec: Any, model: Transformer, heads: int, multiplier: Tensor | None) -> None:
    spec.embeddings[0].weight = model.src_embedding.weight
    spec.position_encodings.encodings = sinusoids(POSITIONS, model.settings.d_model)
    _fill_final_norm(spec, model.encoder_norm)
    for number, (into, layer) in enumerate(zip(spec.layer, model.encoder, strict=True)):
        part = model.part(multiplier, "enc_self", number)
        _fill_attention(into.self_attention, layer.attention, layer.around_attention, heads, part)
        _fill_feed_forward(into.ffn, layer.feed_forward, layer.around_feed_forward)


def _fill_decoder(spec: Any, model: Transformer, heads: int, multiplier: Tensor | None) -> None:
    spec.embeddings.weight = model.tgt_embedding.weight
    spec.projection.weight = model.tgt_embedding.weight
    spec.position_encodings.encodings = sinusoids(POSITIONS, model.settings.d_model)
    _fill_final_norm(spec, model.decoder_norm)
    for number, (into, layer) in enumerate(zip(spec.layer, model.decoder, strict=True)):
        part = model.part(multiplier, "dec_self", number)
        _fill_attention(into.self_attention, layer.attention, layer.around_attention, heads, part)
        cross = model.part(multiplier, "dec_enc", number)
        _fill_attention(into.attention, layer.cross, layer.around_cross, heads, cross)
        _fill_feed_forward(into.ffn, layer.feed_forward, layer.around_feed_forward)


def _fill_final_norm(spec: Any, norm: nn.Module) -> None:
    """Post-norm models have none: their place is taken by an identity."""
    if isinstance(norm, nn.LayerNorm):
        _fill_norm(spec.layer_norm, norm)


def _fill_attention(
    spec: Any, attention: MultiHeadAttention, around: Any, heads: int, multiplier: Tensor | None
) -> None:
    """W_Q, W_K and W_V in one matrix for self-attention, W_Q apart from the others otherwise."""
    missing = (heads - attention.heads) * attention.d_head
    weights = [_with_zero_rows(part, missing) for part in attention.inputs.weight.chunk(3)]
    biases = [_with_zero_rows(part, missing) for part in attention.inputs.bias.chunk(3)]
    parts = [slice(0, 3)] if len(spec.linear) == 2 else [slice(0, 1), slice(1, 3)]
    for linear, part in zip(spec.linear, parts, strict=False):
        linear.weight, linear.bias = torch.cat(weights[part]), torch.cat(biases[part])
    output = attention.output.weight
    if multiplier is not None:
        output = output * multiplier.to(output.dtype).repeat_interleave(attention.d_head)
    spec.linear[-1].weight = _with_zero_rows(output.T, missing).T.contiguous()
    spec.linear[-1].bias = attention.output.bias
    _fill_norm(spec.layer_norm, around.norm)


def _fill_feed_forward(spec: Any, feed_forward: FeedForward, around: Any) -> None:
    for linear, ours in ((spec.linear_0, feed_forward.inner), (spec.linear_1, feed_forward.outer)):
        linear.weight, linear.bias = ours.weight, ours.bias
    _fill_norm(spec.layer_norm, around.norm)


def _fill_norm(spec: Any, norm: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = norm.weight, norm.bias


def _with_zero_rows(block: Tensor, rows: int) -> Tensor:
    return torch.cat((block, block.new_zeros(rows, *block.shape[1:])))
