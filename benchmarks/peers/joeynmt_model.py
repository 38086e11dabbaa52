"""JoeyNMT's Transformer of the same sizes, with its own loss.

It has one dropout for everything, attention weights included, where ours has none.
"""

from collections.abc import Callable
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from benchmarks.peers import load_peer
from benchmarks.peers.marian import uniform_heads
from headcount.base.settings.model import ModelSettings
from headcount.data.batches import Batch
from headcount.data.vocabulary import PAD, Vocabulary

_SPECIALS = 4


def joeynmt_model(settings: ModelSettings, words: Vocabulary, smoothing: float) -> nn.Module:
    """A JoeyNMT model with random weights, one embedding for both languages, and its loss."""
    load_peer("joeynmt")
    from joeynmt.model import build_model

    model = build_model(_sizes(settings), *[_vocabulary(words)] * 2)
    model.loss_function = ("crossentropy", smoothing)  # its setter makes the loss of this
    return model


def joeynmt_loss(model: nn.Module) -> Callable[[Batch], Tensor]:
    """Mean loss per target token of a batch, as JoeyNMT's training takes it."""

    def loss(batch: Batch) -> Tensor:
        source = batch.src != PAD
        summed, *_ = model(
            return_type="loss",
            src=_renumbered(batch.src),
            src_mask=source[:, None],
            src_length=source.sum(1),
            trg_input=_renumbered(batch.tgt_in),
            trg=_renumbered(batch.tgt_out),
            trg_mask=(batch.tgt_out != PAD)[:, None],
        )
        return summed / batch.target_tokens

    return loss


def _sizes(settings: ModelSettings) -> dict:
    shared = {
        "type": "transformer",
        "num_heads": uniform_heads(settings),
        "embeddings": {"embedding_dim": settings.d_model, "scale": True},
        "hidden_size": settings.d_model,
        "ff_size": settings.d_ff,
        "dropout": settings.dropout,
        "layer_norm": settings.norm,
    }
    return {
        "tied_embeddings": True,
        "tied_softmax": True,
        "encoder": {**shared, "num_layers": settings.encoder_layers},
        "decoder": {**shared, "num_layers": settings.decoder_layers},
    }


def _vocabulary(words: Vocabulary) -> object:
    """Our pieces in JoeyNMT's order: the unknown word first, then padding, start and end."""
    from joeynmt.vocabulary import Vocabulary as JoeyVocabulary

    names = dict(zip(("pad", "bos", "eos", "unk"), words.pieces(range(_SPECIALS)), strict=True))
    tokens = {f"{name}_token": piece for name, piece in names.items()}
    ids = {f"{name}_id": number for number, name in enumerate(("unk", "pad", "bos", "eos"))}
    special = SimpleNamespace(**tokens, **ids, sep_token=None, lang_tags=[])
    return JoeyVocabulary([piece for piece, _ in words.counts], special)


def _renumbered(tokens: Tensor) -> Tensor:
    """Our ids as JoeyNMT's: of the special ones each moves up by one, the last to the front."""
    return torch.where(tokens < _SPECIALS, (tokens + 1) % _SPECIALS, tokens)
