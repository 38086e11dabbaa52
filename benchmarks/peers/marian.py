"""HF Marian (`transformers`) of the same sizes as our model, with our weights where asked.

Marian normalises after each residual sum, so only a model with `norm: post` is the same function.
"""

import torch
from torch import Tensor, nn

from benchmarks.peers import load_peer
from headcount.base.errors import UserError
from headcount.base.settings.model import ModelSettings
from headcount.data.batches import Batch
from headcount.data.vocabulary import BOS, EOS, PAD
from headcount.model.attention import MultiHeadAttention, sinusoids
from headcount.model.layers import FeedForward, Residual
from headcount.model.transformer import Transformer

POSITIONS = 1024


def marian_model(settings: ModelSettings, vocabulary: int) -> nn.Module:
    """A MarianMTModel of these sizes with random weights, one embedding for both languages."""
    marian = load_peer("transformers").models.marian
    heads = uniform_heads(settings)
    config = marian.MarianConfig(
        vocab_size=vocabulary,
        max_position_embeddings=POSITIONS,
        encoder_layers=settings.encoder_layers,
        decoder_layers=settings.decoder_layers,
        d_model=settings.d_model,
        encoder_ffn_dim=settings.d_ff,
        decoder_ffn_dim=settings.d_ff,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        activation_function="relu",
        dropout=settings.dropout,
        activation_dropout=settings.dropout,
        attention_dropout=0.0,
        scale_embedding=True,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
        attn_implementation="sdpa",
    )
    return marian.MarianMTModel(config)


def uniform_heads(settings: ModelSettings) -> int:
    """Heads of every layer. Raises UserError where layers differ or a head is not d_model / heads.

    No peer knows such models.
    """
    heads = settings.heads
    if not isinstance(heads, int) or heads * settings.head_width != settings.d_model:
        raise UserError(
            "model.heads: expected one number for all layers that divides d_model, as the peers "
            f"need; found {heads} of width {settings.head_width}"
        )
    return heads


def marian_logits(marian: nn.Module, batch: Batch) -> Tensor:
    """Scores [b, q, vocabulary] of the next target token at every position of a batch."""
    return marian(
        input_ids=batch.src,
        attention_mask=(batch.src != PAD).long(),
        decoder_input_ids=batch.tgt_in,
        use_cache=False,
    ).logits


@torch.no_grad()
def copy_weights(model: Transformer, marian: nn.Module) -> None:
    """Give a Marian model of the same sizes our weights, positions and norm's ε.

    Raises UserError if ours is not post-norm: Marian then computes something else.
    """
    if model.settings.norm != "post":
        raise UserError(
            "HF Marian: expected a model with norm: post, found norm: pre; "
            "train one with --norm post, or leave marian out of --peers"
        )
    marian.model.shared.weight.copy_(model.tgt_embedding.weight)
    for side in (marian.model.encoder, marian.model.decoder):
        side.embed_positions.weight.copy_(sinusoids(POSITIONS, model.settings.d_model))
    for ours, theirs in zip(model.encoder, marian.model.encoder.layers, strict=True):
        _copy_attention(ours.attention, theirs.self_attn)
        _copy_norm(ours.around_attention, theirs.self_attn_layer_norm)
        _copy_feed_forward(ours.feed_forward, ours.around_feed_forward, theirs)
    for ours, theirs in zip(model.decoder, marian.model.decoder.layers, strict=True):
        _copy_attention(ours.attention, theirs.self_attn)
        _copy_norm(ours.around_attention, theirs.self_attn_layer_norm)
        _copy_attention(ours.cross, theirs.encoder_attn)
        _copy_norm(ours.around_cross, theirs.encoder_attn_layer_norm)
        _copy_feed_forward(ours.feed_forward, ours.around_feed_forward, theirs)


def _copy_attention(ours: MultiHeadAttention, theirs: nn.Module) -> None:
    projections = (theirs.q_proj, theirs.k_proj, theirs.v_proj)
    weights, biases = ours.inputs.weight.chunk(3), ours.inputs.bias.chunk(3)
    for linear, weight, bias in zip(projections, weights, biases, strict=True):
        linear.weight.copy_(weight)
        linear.bias.copy_(bias)
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def _copy_norm(ours: Residual, theirs: nn.LayerNorm) -> None:
    theirs.load_state_dict(ours.norm.state_dict())
    theirs.eps = ours.norm.eps


def _copy_feed_forward(ours: FeedForward, around: Residual, theirs: nn.Module) -> None:
    theirs.fc1.load_state_dict(ours.inner.state_dict())
    theirs.fc2.load_state_dict(ours.outer.state_dict())
    _copy_norm(around, theirs.final_layer_norm)
