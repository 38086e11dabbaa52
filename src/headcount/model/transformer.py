"""The encoder-decoder Transformer (Vaswani et al. 2017) with a multiplier for every head."""

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

import torch
from torch import Tensor, nn

from headcount.base.addresses import KINDS
from headcount.base.errors import UserError
from headcount.base.folders import SIDES
from headcount.base.settings.model import ModelSettings
from headcount.data.vocabulary import PAD
from headcount.model.attention import DenseAttention, MultiHeadAttention, padding_mask, sinusoids
from headcount.model.kernels.matmul import linear
from headcount.model.kernels.small import dropout
from headcount.model.layers import DecoderLayer, EncoderLayer, Memory, Targets, WholeTargets


class Transformer(nn.Module):
    """Translation model. The output layer shares the target embedding's weights.

    `multiplier` is [heads] in the order of `settings.grid`, or [b, heads], or None.
    """

    def __init__(self, settings: ModelSettings, src_size: int, tgt_size: int, joint: bool):
        """`src_size`, `tgt_size`: of vocabularies. `joint`: both languages share an embedding."""
        super().__init__()
        self.settings = settings
        self.grid = settings.grid
        self.scale = math.sqrt(settings.d_model) if settings.scale_embedding else 1.0
        counts = self.grid.counts | settings.ffn_widths
        self.tgt_embedding = nn.Embedding(tgt_size, settings.d_model)
        self.own_src_embedding = None if joint else nn.Embedding(src_size, settings.d_model)
        for table in filter(None, (self.tgt_embedding, self.own_src_embedding)):
            nn.init.normal_(table.weight, std=settings.d_model**-0.5)
        encoder = zip(counts["enc_self"], counts["enc_ffn"], strict=True)
        decoder = zip(counts["dec_self"], counts["dec_enc"], counts["dec_ffn"], strict=True)
        self.encoder = nn.ModuleList(EncoderLayer(settings, *sizes) for sizes in encoder)
        self.decoder = nn.ModuleList(
            DecoderLayer(settings, number, *sizes) for number, sizes in enumerate(decoder)
        )
        norm = partial(nn.LayerNorm, settings.d_model, settings.norm_epsilon)
        final = settings.norm == "pre"  # post-norm layers end in a norm of their own
        self.encoder_norm = norm() if final else nn.Identity()
        self.decoder_norm = norm() if final else nn.Identity()
        # Of the source, then of the target.
        self.embedding_norms = nn.ModuleList(norm() for _ in SIDES if settings.embedding_norm)
        table = settings.position_table, settings.d_model
        self.position_tables = nn.ParameterList(_frozen(*table) for _ in SIDES if table[0])
        self.register_buffer("sines", sinusoids(512, settings.d_model), persistent=False)
        self.output_bias = _frozen(tgt_size) if settings.output_bias else None

    @property
    def src_embedding(self) -> nn.Embedding:
        """The source embedding, which is the target's where the vocabulary is joint."""
        return self.tgt_embedding if self.own_src_embedding is None else self.own_src_embedding

    @property
    def dropped(self) -> float:
        """Dropout of attention weights, 0 outside training."""
        return self.settings.attention_dropout if self.training else 0.0

    def attentions(self) -> Iterator[tuple[str, int, MultiHeadAttention]]:
        """Yield kind, layer and module of every attention, in the flat order of the heads."""
        yield from (("enc_self", n, layer.attention) for n, layer in enumerate(self.encoder))
        yield from (("dec_self", n, layer.attention) for n, layer in enumerate(self.decoder))
        yield from (("dec_enc", n, layer.cross) for n, layer in enumerate(self.decoder))

    def encode(self, src: Tensor, multiplier: Tensor | None = None) -> Memory:
        """Return the source [b, k], encoded and projected for every decoder layer."""
        mask = padding_mask(src, PAD)
        pattern = DenseAttention(mask, dropped=self.dropped)
        states = self.enter(0, self.src_embedding(src), slice(0, src.shape[1]))
        for number, layer in enumerate(self.encoder):
            states = layer(states, pattern, self.part(multiplier, "enc_self", number))
        states = self.encoder_norm(states)
        return Memory([layer.cross.project_memory(states) for layer in self.decoder], mask)

    def decode(
        self,
        tgt_in: Tensor,
        memory: Memory,
        multiplier: Tensor | None = None,
        targets: Targets | None = None,
    ) -> Tensor:
        """Return decoder output [b, q, d] of target tokens [b, q], by default of whole targets."""
        targets = targets or WholeTargets(tgt_in.shape[1], memory, self.dropped)
        states = self.enter(1, self.tgt_embedding(tgt_in), targets.positions)
        for number, layer in enumerate(self.decoder):
            of_self = self.part(multiplier, "dec_self", number)
            of_cross = self.part(multiplier, "dec_enc", number)
            states = layer(states, targets, memory, of_self, of_cross)
        return self.decoder_norm(states)

    def logits(self, states: Tensor) -> Tensor:
        """Return scores [..., vocabulary] of the next target token, before the softmax."""
        return linear(states, self.tgt_embedding.weight, self.output_bias)

    def part(self, multiplier: Tensor | None, kind: str, layer: int) -> Tensor | None:
        """Return the entries of a flat multiplier that belong to one layer of one kind."""
        return None if multiplier is None else multiplier[..., self.grid.span(kind, layer)]

    def enter(self, side: int, embeddings: Tensor, positions: slice) -> Tensor:
        """Return the input states [b, q, d] of the first layer of a side."""
        states = embeddings * self.scale + self._positions(side, positions.stop)[positions]
        if self.embedding_norms:
            states = self.embedding_norms[side](states)
        return dropout(states, self.settings.dropout, self.training)

    def _positions(self, side: int, length: int) -> Tensor:
        """Return the vectors of at least `length` positions, [p, d]. Raises UserError for fewer."""
        if self.position_tables:
            if length > self.settings.position_table:
                raise UserError(
                    f"a sentence of {length} subwords with its end, expected at most "
                    f"{self.settings.position_table} (model.position_table); lower text.max_words"
                )
            return self.position_tables[side]
        sines = self.sines  # another thread may change the attribute
        if length > len(sines):
            self.sines = sines = sinusoids(2 * length, self.settings.d_model).to(sines.device)
        return sines


def _frozen(*shape: int) -> nn.Parameter:
    """Return a parameter that training does not change."""
    return nn.Parameter(torch.zeros(shape), requires_grad=False)


def copy_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy weights of all or some parameters into a model of the same shapes."""
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for name, weight in weights.items():
            parameters[name].copy_(weight)


def parameter_count(model: nn.Module) -> int:
    """Return the number of weights, with frozen ones. Shared weights count once."""
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
    """Return the device of the model's weights."""
    return next(model.parameters()).device


@contextmanager
def watch_attention(
    model: Transformer, visit: Callable[[str, int, Tensor], None], kinds: Container[str] = KINDS
) -> Iterator[None]:
    """Call `visit` with kind, layer and weights [b, h, q, k] of attention layers as they run."""

    def show(kind: str, layer: int, _: nn.Module, inputs: tuple) -> None:
        queries, keys, _, attention = inputs[:4]
        visit(kind, layer, attention.weights(queries, keys))

    with ExitStack() as hooks:
        for kind, layer, module in model.attentions():
            if module.heads and kind in kinds:
                hook = module.register_forward_pre_hook(partial(show, kind, layer))
                hooks.enter_context(hook)
        yield


@contextmanager
def watch_inputs(modules: Iterable[nn.Module]) -> Iterator[dict[nn.Module, Tensor]]:
    """Yield a dict that receives the first inputs of these modules, in the order they run in."""
    entering: dict[nn.Module, Tensor] = {}

    def keep(module: nn.Module, inputs: tuple) -> None:
        entering[module] = inputs[0]

    with ExitStack() as hooks:
        for module in modules:
            hooks.enter_context(module.register_forward_pre_hook(keep))
        yield entering
