"""`torch.nn.Transformer` of the same sizes, as a careful user of torch would write it."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.peers.marian import POSITIONS, uniform_heads
from headcount.base.settings.model import ModelSettings
from headcount.data.batches import Batch
from headcount.data.vocabulary import PAD
from headcount.model.attention import sinusoids


class PlainTransformer(nn.Module):
    """nn.Transformer with tied embeddings and sinusoidal positions around it."""

    def __init__(self, settings: ModelSettings, vocabulary: int):
        super().__init__()
        self.scale = math.sqrt(settings.d_model)
        self.embedding = nn.Embedding(vocabulary, settings.d_model)
        nn.init.normal_(self.embedding.weight, std=1 / self.scale)
        self.dropout = nn.Dropout(settings.dropout)
        self.core = nn.Transformer(
            settings.d_model,
            uniform_heads(settings),
            settings.encoder_layers,
            settings.decoder_layers,
            settings.d_ff,
            settings.dropout,
            batch_first=True,
            norm_first=settings.norm == "pre",
        )
        self.register_buffer("positions", sinusoids(POSITIONS, settings.d_model))

    def forward(self, batch: Batch) -> Tensor:
        """Scores [b, q, vocabulary] of the next target token at every position of a batch."""
        padding = batch.src == PAD
        length = batch.tgt_in.shape[1]
        later = torch.ones(length, length, dtype=torch.bool, device=padding.device).triu(1)
        states = self.core(
            self._embed(batch.src),
            self._embed(batch.tgt_in),
            tgt_mask=later,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return functional.linear(states, self.embedding.weight)

    def _embed(self, tokens: Tensor) -> Tensor:
        embedded = self.embedding(tokens) * self.scale + self.positions[: tokens.shape[1]]
        return self.dropout(embedded)
