"""Small models and texts whose sizes all differ, so that no mix-up of two sizes goes unseen."""

import torch
from torch import Tensor

from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.model import ModelSettings
from headcount.data.batches import ParallelText
from headcount.model.attention import MultiHeadAttention
from headcount.model.loss import token_losses
from headcount.model.transformer import Transformer
from headcount.search.beam_search import BeamSearch

torch.set_num_threads(1)

SIZES = {"encoder_layers": 2, "decoder_layers": 3, "d_model": 10, "d_ff": 14, "d_head": 4}
UNEVEN = {"enc_self": [3, 2], "dec_self": [1, 3, 2], "dec_enc": [2, 3, 1]}

# Ids 0-3 are special; the sources' vocabulary has 9 entries, the targets' 11.
TEXT = ParallelText(src=[[4, 8, 5, 6, 7], [7], [8, 4, 4]], tgt=[[9, 4], [5, 6, 10, 7, 4, 8], [6]])


def make_settings(**changes) -> ModelSettings:
    """Settings of a model with 2 + 3 layers, 3 heads of width 4 in a width of 10."""
    return ModelSettings(**{**SIZES, "heads": 3, "dropout": 0.3, **changes})


def make_model(
    seed: int = 1, joint: bool = False, src_size: int = 9, tgt_size: int = 11, **changes
) -> Transformer:
    """Such a model with every weight drawn, biases and norms too; dropout off."""
    torch.manual_seed(seed)
    model = Transformer(make_settings(**changes), src_size, tgt_size, joint)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return model.eval()


def attention_of(model: Transformer, kind: str, layer: int) -> MultiHeadAttention:
    """The attention module of one layer of one kind."""
    if kind == "enc_self":
        return model.encoder[layer].attention
    return model.decoder[layer].attention if kind == "dec_self" else model.decoder[layer].cross


def search_of(
    model: Transformer,
    sources: list[list[int]],
    settings: DecodeSettings,
    multiplier: Tensor | None = None,
) -> BeamSearch:
    """A search of one batch that has not begun."""
    return BeamSearch(model, sources, settings, multiplier)


def one_pair(text: ParallelText, number: int) -> ParallelText:
    """A text of one pair alone."""
    return ParallelText([text.src[number]], [text.tgt[number]])


def token_slopes(model: Transformer, number: int, smoothing: float = 0.0) -> Tensor:
    """∂ℓ_t/∂ξ [heads, tokens] of one sentence of `TEXT` alone, by central differences.

    All of a batch are that sentence; each has a multiplier of its own, which differs in one head.
    """
    nudges = 1e-5 * torch.eye(model.grid.size, dtype=torch.float64)
    multiplier = torch.cat([1 + nudges, 1 - nudges])
    copies = ParallelText(
        [TEXT.src[number]] * len(multiplier), [TEXT.tgt[number]] * len(multiplier)
    )
    with torch.no_grad():
        losses = token_losses(model, copies.batch(range(len(multiplier))), multiplier, smoothing)
    up, down = losses.view(2, model.grid.size, -1)
    return (up - down) / 2e-5
