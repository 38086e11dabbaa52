"""The encoder-decoder Transformer (Vaswani et al. 2017) with a multiplier for every head."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headcount.base.settings.model import ModelSettings
from headcount.data.vocabulary import PAD
from headcount.model.attention import padding_mask, sinusoids
from headcount.model.kernels.dropout import dropout
from headcount.model.kernels.places import Places
from headcount.model.kernels.products import linear
from headcount.model.layers import NORM_EPSILON, DecoderLayer, EncoderLayer


@dataclass(frozen=True)
class Memory:
    """What the decoder sees of the source: keys and values per layer, and which are real."""

    keys_values: list[tuple[Tensor, Tensor]]  # per decoder layer, [b, h, k, e] each
    mask: Tensor | Places  # [b, 1, 1, k], True = may be attended to; or their places

    def each(self, change: Callable[[Tensor], Tensor]) -> "Memory":
        """The memory of other sentences: `change` is given every tensor, a row per sentence.

        Not for a mask by places.
        """
        pairs = [(change(keys), change(values)) for keys, values in self.keys_values]
        return Memory(pairs, change(self.mask))


class Transformer(nn.Module):
    """Translation model. The output layer shares the target embedding's weights.

    `multiplier`, wherever it is an argument, is flat in the order of `settings.grid`: [heads], or
    [b, heads] with one row per sentence; None leaves every head as it is.
    """

    def __init__(self, settings: ModelSettings, src_size: int, tgt_size: int, joint: bool):
        """`src_size`, `tgt_size`: vocabulary sizes; `joint`: both languages share one embedding."""
        super().__init__()
        self.settings = settings
        self.grid = settings.grid
        self.scale = math.sqrt(settings.d_model)
        counts = self.grid.counts
        self.tgt_embedding = nn.Embedding(tgt_size, settings.d_model)
        self.own_src_embedding = None if joint else nn.Embedding(src_size, settings.d_model)
        for table in filter(None, (self.tgt_embedding, self.own_src_embedding)):
            nn.init.normal_(table.weight, std=1 / self.scale)
        self.encoder = nn.ModuleList(EncoderLayer(settings, h) for h in counts["enc_self"])
        self.decoder = nn.ModuleList(
            DecoderLayer(settings, own, cross)
            for own, cross in zip(counts["dec_self"], counts["dec_enc"], strict=True)
        )
        final = settings.norm == "pre"  # post-norm layers end in a norm of their own
        self.encoder_norm = nn.LayerNorm(settings.d_model, NORM_EPSILON) if final else nn.Identity()
        self.decoder_norm = nn.LayerNorm(settings.d_model, NORM_EPSILON) if final else nn.Identity()
        self.register_buffer("positions", sinusoids(512, settings.d_model), persistent=False)

    @property
    def src_embedding(self) -> nn.Embedding:
        """The source embedding: the target's own where the vocabulary is joint."""
        return self.tgt_embedding if self.own_src_embedding is None else self.own_src_embedding

    def encode(self, src: Tensor, multiplier: Tensor | None = None) -> Memory:
        """The source [b, k], read by the encoder and projected for every decoder layer."""
        mask = padding_mask(src, PAD)
        states = self._embed(self.src_embedding, src, 0)
        for number, layer in enumerate(self.encoder):
            states = layer(states, mask, self.part(multiplier, "enc_self", number))
        states = self.encoder_norm(states)
        return Memory([layer.cross.project_memory(states) for layer in self.decoder], mask)

    def decode(self, tgt_in: Tensor, memory: Memory, multiplier: Tensor | None = None) -> Tensor:
        """Decoder output [b, q, d] for whole targets [b, q], each position blind to later ones."""

        def attention_of(number: int) -> Callable[[Tensor], Tensor]:
            attention = self.decoder[number].attention
            own = self.part(multiplier, "dec_self", number)
            return lambda x: attention(*attention.project(x), causal=True, multiplier=own)

        states = self._embed(self.tgt_embedding, tgt_in, 0)
        return self.run_decoder(states, attention_of, memory, multiplier)

    def run_decoder(
        self,
        states: Tensor,
        attention_of: Callable[[int], Callable[[Tensor], Tensor]],
        memory: Memory,
        multiplier: Tensor | None,
    ) -> Tensor:
        """Decoder output [b, q, d] of embedded targets, given the self-attention of each layer."""
        for number, layer in enumerate(self.decoder):
            cross = self.part(multiplier, "dec_enc", number)
            keys_values = memory.keys_values[number]
            states = layer(states, attention_of(number), keys_values, memory.mask, cross)
        return self.decoder_norm(states)

    def embed_target(self, tokens: Tensor, position: int) -> Tensor:
        """Embeddings [b, q, d] of target tokens [b, q] that all stand at one position."""
        return self._embed(self.tgt_embedding, tokens, position, together=True)

    def logits(self, states: Tensor) -> Tensor:
        """Scores [..., vocabulary] of the next target token, before the softmax."""
        return linear(states, self.tgt_embedding.weight)

    def part(self, multiplier: Tensor | None, kind: str, layer: int) -> Tensor | None:
        """The entries of a flat multiplier that belong to one layer of one kind."""
        return None if multiplier is None else multiplier[..., self.grid.span(kind, layer)]

    def _embed(
        self, table: nn.Embedding, tokens: Tensor, position: int, together: bool = False
    ) -> Tensor:
        length = 1 if together else tokens.shape[1]
        positions = self.positions  # another thread may change them meanwhile
        if position + length > len(positions):
            longer = sinusoids(2 * (position + length), self.settings.d_model)
            self.positions = positions = longer.to(positions.device)
        states = table(tokens) * self.scale + positions[position : position + length]
        return dropout(states, self.settings.dropout, self.training)


def parameter_count(model: nn.Module) -> int:
    """Number of trained numbers; shared ones count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def check_multiplier(model: Transformer, multiplier: Tensor | None, sentences: int) -> None:
    """Raise ValueError unless the multiplier is None, [heads] or [sentences, heads]."""
    heads = model.grid.size
    if multiplier is not None and multiplier.shape not in ((heads,), (sentences, heads)):
        raise ValueError(
            f"head multiplier: expected shape [{heads}] or [{sentences}, {heads}], "
            f"found {list(multiplier.shape)}"
        )


def first_device(model: nn.Module) -> torch.device:
    """The device that the model's weights are on."""
    return next(model.parameters()).device
