"""Relevance of heads to the words that a model predicts: relevance is walked from a logit back.

Letters in shapes: t generation steps of one sentence, p positions, q target and k source positions,
d width of the model, h heads.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from headcount.base.settings.lrp import LrpSettings
from headcount.data.batches import Ids, ParallelText, collate
from headcount.heads.lrp_rules import Rules, rescaled
from headcount.model.attention import DenseAttention, MultiHeadAttention
from headcount.model.layers import DecoderLayer, EncoderLayer, FeedForward, Residual
from headcount.model.transformer import Transformer, first_device

# The output of what is inside a sub-layer, and the way back through it.
Sublayer = Callable[[Tensor], tuple[Tensor, Callable[[Tensor], Tensor]]]


@torch.inference_mode()
def sentence_relevance(model: Transformer, src: Ids, tgt: Ids, settings: LrpSettings) -> Tensor:
    """Relevance [t, heads in flat order] of every head at every generation step of a sentence.

    At each step the model's likeliest next word, given the source and the words of `tgt` before,
    has relevance 1. A head's relevance is the sum over its outputs at all positions, divided by
    the sum of sizes over the heads of its layer and kind: under `alpha_beta` a share, 0 to 1.
    Larger means more relevant.

    Source: Voita et al. 2019, section 4 and appendix A.
    """
    batch = collate(ParallelText([src], [tgt]), [0], first_device(model))
    states, logits = _record(model.eval(), batch.src, batch.tgt_in)
    walk = _Walk(model, Rules(settings), settings.positions == "exclude_eos")
    walk.decoder(states, logits.argmax(-1))
    walk.encoder(states)
    return torch.cat([walk.shares(kind) for kind in model.grid.counts], 1)


@dataclass
class _States:
    """What enters every layer and both last norms, [p, d] each."""

    encoder: list[Tensor] = field(default_factory=list)
    decoder: list[Tensor] = field(default_factory=list)
    memory: Tensor | None = None  # the encoder's output, after its norm
    outputs: Tensor | None = None  # the decoder's


def _record(model: Transformer, src: Tensor, tgt_in: Tensor) -> tuple[_States, Tensor]:
    """States of one sentence, and its logits [t, vocabulary]."""
    states = _States()

    def keep(into: list[Tensor], _: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        into.append(inputs[0][0])

    stacks = ((model.encoder, model.encoder_norm), (model.decoder, model.decoder_norm))
    handles = [
        module.register_forward_pre_hook(partial(keep, into))
        for (layers, norm), into in zip(stacks, (states.encoder, states.decoder), strict=True)
        for module in [*layers, norm]
    ]
    try:
        states.outputs = model.decode(tgt_in, model.encode(src))[0]
    finally:
        for handle in handles:
            handle.remove()
    states.memory = model.encoder_norm(states.encoder[-1])
    return states, model.logits(states.outputs)


class _Walk:
    """One sentence's relevance on its way back, and what each head had of it."""

    def __init__(self, model: Transformer, rules: Rules, without_eos: bool):
        self._model, self._rules, self._without_eos = model, rules, without_eos
        self._found: dict[tuple[str, int], Tensor] = {}  # [t, h]
        self._memory = None  # relevance of the encoder's output, [t, k, d]

    def shares(self, kind: str) -> Tensor:
        """Relevance of all heads of a kind, [t, h], each layer's sizes summing to 1."""
        layers = [self._found[kind, layer] for layer in range(len(self._model.grid.counts[kind]))]
        return torch.cat([functional.normalize(layer, p=1, dim=1) for layer in layers], 1)

    def decoder(self, states: _States, words: Tensor) -> None:
        """From the logits of `words` [t], one at each position, down to the first layer's heads."""
        model, rules = self._model, self._rules
        share = rules.shares(model.tgt_embedding.weight[words] * states.outputs)
        share = rescaled(share, torch.ones_like(share[:, :1]), (1,))
        relevance = torch.diag_embed(share.t()).permute(1, 2, 0)  # step t looks at position t
        relevance = rules.norm(states.decoder[-1], model.decoder_norm, relevance)
        self._memory = torch.zeros_like(states.memory).expand(len(words), -1, -1)
        for number in reversed(range(len(model.decoder))):
            relevance = self._decoder_layer(number, states, relevance)

    def encoder(self, states: _States) -> None:
        """From the encoder's output down to the first layer's heads."""
        model = self._model
        relevance = self._rules.norm(states.encoder[-1], model.encoder_norm, self._memory)
        for number in reversed(range(len(model.encoder))):
            layer: EncoderLayer = model.encoder[number]
            start = states.encoder[number]
            attend = partial(self._self_attention, layer.attention, ("enc_self", number), False)
            middle = _after(layer.around_attention, start, attend)
            relevance = self._feed_forward(layer, middle, relevance)
            relevance = self._sublayer(layer.around_attention, start, attend, relevance)

    def _decoder_layer(self, number: int, states: _States, relevance: Tensor) -> Tensor:
        layer: DecoderLayer = self._model.decoder[number]
        start = states.decoder[number]
        attend = partial(self._self_attention, layer.attention, ("dec_self", number), True)
        look = partial(self._cross_attention, layer.cross, number, states.memory)
        first = _after(layer.around_attention, start, attend)
        second = _after(layer.around_cross, first, look)
        relevance = self._feed_forward(layer, second, relevance)
        relevance = self._sublayer(layer.around_cross, first, look, relevance)
        return self._sublayer(layer.around_attention, start, attend, relevance)

    def _sublayer(
        self,
        around: Residual,
        start: Tensor,
        run: Sublayer,
        relevance: Tensor,
    ) -> Tensor:
        """Relevance [t, p, d] of a sub-layer's input [p, d], given that of its output."""
        added, back = run(around.enter(start))
        if not around.before:
            relevance = self._rules.norm(start + added, around.norm, relevance)
        skipped, of_added = self._rules.residual(start, added, relevance)
        of_inside = back(of_added)
        if around.before:
            of_inside = self._rules.norm(start, around.norm, of_inside)
        return skipped + of_inside

    def _feed_forward(
        self, layer: EncoderLayer | DecoderLayer, start: Tensor, relevance: Tensor
    ) -> Tensor:
        module: FeedForward = layer.feed_forward
        rules = self._rules

        def run(states: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
            active = functional.relu(module.inner(states))

            def back(relevance: Tensor) -> Tensor:
                relevance = rules.linear(active, module.outer.weight, module.outer.bias, relevance)
                # The ReLU is passed over.
                return rules.linear(states, module.inner.weight, module.inner.bias, relevance)

            return module.outer(active), back

        return self._sublayer(layer.around_feed_forward, start, run, relevance)

    def _self_attention(
        self, module: MultiHeadAttention, place: tuple[str, int], causal: bool, states: Tensor
    ) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        core = _Core(module, *(x[0] for x in module.project(states[None])), causal)

        def back(relevance: Tensor) -> Tensor:
            of_inputs = self._core_back(core, place, relevance)
            joined = torch.cat([_flat(part) for part in of_inputs], -1)
            return self._rules.linear(states, module.inputs.weight, module.inputs.bias, joined)

        return core.output(), back

    def _cross_attention(
        self, module: MultiHeadAttention, number: int, memory: Tensor, states: Tensor
    ) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        keys, values = (x[0] for x in module.project_memory(memory[None]))
        core = _Core(module, module.project_queries(states[None])[0], keys, values, False)
        width = module.heads * module.d_head
        weight, bias = module.inputs.weight, module.inputs.bias

        def back(relevance: Tensor) -> Tensor:
            of_queries, *rest = self._core_back(core, ("dec_enc", number), relevance)
            joined = torch.cat([_flat(part) for part in rest], -1)
            of_memory = self._rules.linear(memory, weight[width:], bias[width:], joined)
            self._memory = self._memory + of_memory
            return self._rules.linear(states, weight[:width], bias[:width], _flat(of_queries))

        return core.output(), back

    def _core_back(
        self, core: "_Core", place: tuple[str, int], relevance: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Relevance of queries, keys and values; notes what the heads' outputs have."""
        module, context = core.module, core.context
        of_context = self._rules.linear(
            _flat(context[None])[0], module.output.weight, module.output.bias, relevance
        )
        of_context = of_context.unflatten(2, (module.heads, module.d_head)).transpose(1, 2)
        counted = of_context
        if self._without_eos and place[0] == "enc_self":
            counted = of_context[:, :, :-1]
        self._found[place] = counted.sum((2, 3))
        return self._rules.attention(core.queries, core.keys, core.values, core.weights, of_context)


@dataclass
class _Core:
    """Attention of one sentence between the projections: what enters it and what it gives."""

    module: MultiHeadAttention
    queries: Tensor  # [h, q, e]
    keys: Tensor
    values: Tensor
    causal: bool

    def __post_init__(self) -> None:
        self.weights = DenseAttention(causal=self.causal).weights(self.queries, self.keys)
        self.context = self.weights @ self.values

    def output(self) -> Tensor:
        """Output of the attention module, [q, d]."""
        return self.module.merge(self.context[None], None)[0]


def _after(around: Residual, start: Tensor, run: Sublayer) -> Tensor:
    """States [p, d] behind a sub-layer that reads `start`."""
    return around.leave(start, run(around.enter(start))[0])


def _flat(by_head: Tensor) -> Tensor:
    """[t, h, p, e] as [t, p, h · e]."""
    return by_head.transpose(1, 2).flatten(2)
