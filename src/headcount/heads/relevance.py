"""Relevance of heads to the words that a model predicts: relevance is walked from a logit back.

Letters in shapes: t generation steps of one sentence, p positions, q target and k source positions,
d width of the model, h heads, e width of one.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from tqdm import tqdm

from headcount.base.files import write_result
from headcount.base.head_values import COLUMNS, head_rows
from headcount.base.settings.importance import LrpSettings
from headcount.data.batches import Ids, ParallelText, collate
from headcount.heads.lrp_rules import Rules, rescaled
from headcount.model.attention import DenseAttention, MultiHeadAttention
from headcount.model.layers import FeedForward, Residual
from headcount.model.observed import watch_inputs
from headcount.model.transformer import Transformer, first_device
from headcount.scoring.bootstrap import SEED
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

RESAMPLES = 1000

Back = Callable[[Tensor], Tensor]  # relevance of a module's input, given that of its output
Sublayer = tuple[Residual, Callable[[Tensor], tuple[Tensor, Back]]]
"""What adds to the states; and, given the normalised ones, what is added, and the way back."""


def write_relevance(
    folder: ModelFolder, pair: PairFolder, settings: LrpSettings, out: Path, origin: dict[str, Any]
) -> None:
    """Write the relevance of every head by the rule of the settings, and by the other rule.

    `out` is a CSV with the statistics relevance, relevance_low, relevance_high (95 % bootstrap
    over sentences) and relevance_<other rule>: means over generation steps. Beside it goes a JSON
    of the same name: sentences, steps, seconds, `origin`. Raises UserError if the dev text is
    empty or the model knows other words.
    """
    folder.check(pair)
    text = pair.first_pairs("dev", settings.max_sentences)
    model = folder.load(settings.device)
    begun = time.perf_counter()
    other = "ratio" if settings.rule == "alpha_beta" else "alpha_beta"
    with tqdm(total=2 * len(text), unit="sentence", disable=None) as bar:
        (sums, steps), (others, _) = (
            measure_relevance(model, text, each, bar) for each in (settings.rule, other)
        )
    values = relevance_values(sums, steps) | {f"relevance_{other}": others.sum(0) / steps.sum()}
    facts = {"sentences": len(text), "steps": int(steps.sum())}
    facts |= {"seconds": round(time.perf_counter() - begun, 2), "provenance": origin}
    write_result(out, COLUMNS, head_rows(model.grid.heads(), values), facts)


def measure_relevance(
    model: Transformer, text: ParallelText, rule: str, bar: tqdm
) -> tuple[np.ndarray, np.ndarray]:
    """Relevance summed over generation steps, [sentences, heads], and the steps, [sentences]."""
    found = []
    for src, tgt in zip(text.src, text.tgt, strict=True):
        found.append(sentence_relevance(model, src, tgt, rule).double().cpu().numpy())
        bar.update()
    return np.stack([each.sum(0) for each in found]), np.array([len(each) for each in found])


def relevance_values(sums: np.ndarray, steps: np.ndarray) -> dict[str, np.ndarray]:
    """Mean over steps, [heads], with the bounds of its 95 % bootstrap interval over sentences."""
    drawn = np.random.default_rng(SEED).integers(len(steps), size=(RESAMPLES, len(steps)))
    means = sums[drawn].sum(1) / steps[drawn].sum(1)[:, None]
    low, high = np.quantile(means, (0.025, 0.975), axis=0)
    mean = sums.sum(0) / steps.sum()
    return {"relevance": mean, "relevance_low": low, "relevance_high": high}


@torch.inference_mode()
def sentence_relevance(model: Transformer, src: Ids, tgt: Ids, rule: str) -> Tensor:
    """Relevance [t, heads in flat order] of every head at every generation step of a sentence.

    At each step the model's likeliest next word, given the source and the words of `tgt` before,
    has relevance 1. A head's relevance is the sum over its outputs at all positions, divided by
    the sum of sizes over the heads of its layer and kind: under `alpha_beta` a share, 0 to 1.
    Larger means more relevant.

    Source: Voita et al. 2019, section 4 and appendix A.
    """
    batch = collate(ParallelText([src], [tgt]), [0], first_device(model))
    stacks = (*model.encoder, model.encoder_norm, *model.decoder, model.decoder_norm)
    with watch_inputs(stacks) as entering:
        outputs = model.eval().decode(batch.tgt_in, model.encode(batch.src))[0]
    states = {module: inputs[0] for module, inputs in entering.items()}
    walk = _Walk(model, states, Rules(rule))
    walk.decoder(outputs, model.logits(outputs).argmax(-1))
    walk.encoder()
    return torch.cat([walk.shares(kind) for kind in model.grid.counts], 1)


class _Walk:
    """One sentence's relevance on its way back, and what each head had of it."""

    def __init__(self, model: Transformer, states: dict[nn.Module, Tensor], rules: Rules):
        """`states`: what enters every layer and both last norms, [p, d] each."""
        self._model, self._states, self._rules = model, states, rules
        self._found: dict[tuple[str, int], Tensor] = {}  # [t, h]
        self._memory = model.encoder_norm(states[model.encoder_norm])  # [k, d]
        self._of_memory = None  # its relevance, [t, k, d]

    def shares(self, kind: str) -> Tensor:
        """Relevance of all heads of a kind, [t, h], each layer's sizes summing to 1."""
        layers = [self._found[kind, layer] for layer in range(len(self._model.grid.counts[kind]))]
        return torch.cat([functional.normalize(layer, p=1, dim=1) for layer in layers], 1)

    def decoder(self, outputs: Tensor, words: Tensor) -> None:
        """From the logits of `words` [t], one at each position, down to the first layer's heads.

        `outputs`: the decoder's, [q, d].
        """
        model, rules = self._model, self._rules
        bias = None if model.output_bias is None else model.output_bias[words]
        share = rules.shares(rules.with_bias(model.tgt_embedding.weight[words] * outputs, bias))
        share = rescaled(share, torch.ones_like(share[:, :1]), (1,))
        relevance = torch.diag_embed(share.t()).permute(1, 2, 0)  # step t looks at position t
        norm = model.decoder_norm
        relevance = rules.norm(self._states[norm], norm, relevance)
        self._of_memory = torch.zeros_like(self._memory).expand(len(words), -1, -1)
        for number, layer in reversed(list(enumerate(model.decoder))):
            attend = partial(self._attention, layer.attention, ("dec_self", number))
            look = partial(self._attention, layer.cross, ("dec_enc", number))
            sublayers = [(layer.around_attention, attend), (layer.around_cross, look)]
            relevance = self._layer(layer, sublayers, relevance)

    def encoder(self) -> None:
        """From the encoder's output down to the first layer's heads."""
        norm = self._model.encoder_norm
        relevance = self._rules.norm(self._states[norm], norm, self._of_memory)
        for number, layer in reversed(list(enumerate(self._model.encoder))):
            attend = partial(self._attention, layer.attention, ("enc_self", number))
            relevance = self._layer(layer, [(layer.around_attention, attend)], relevance)

    def _layer(self, layer: nn.Module, sublayers: Sequence[Sublayer], relevance: Tensor) -> Tensor:
        """Relevance [t, p, d] of what enters a layer, given that of its output.

        `sublayers`: all but the last, which is the feed-forward network.
        """
        feed_forward = partial(self._feed_forward, layer.feed_forward)
        start, passed = self._states[layer], []
        for around, run in (*sublayers, (layer.around_feed_forward, feed_forward)):
            added, back = run(around.enter(start))
            passed.append((around, start, added, back))
            start = around.leave(start, added)
        for around, start, added, back in reversed(passed):
            if not around.before:
                relevance = self._rules.norm(start + added, around.norm, relevance)
            skipped, of_added = self._rules.residual(start, added, relevance)
            of_inside = back(of_added)
            if around.before:
                of_inside = self._rules.norm(start, around.norm, of_inside)
            relevance = skipped + of_inside
        return relevance

    def _feed_forward(self, module: FeedForward, states: Tensor) -> tuple[Tensor, Back]:
        active = module.activation(module.inner(states))

        def back(relevance: Tensor) -> Tensor:
            outer, inner = module.outer, module.inner
            relevance = self._rules.linear(active, outer.weight, outer.bias, relevance)
            # The activation is passed over.
            return self._rules.linear(states, inner.weight, inner.bias, relevance)

        return module.outer(active), back

    def _attention(
        self, module: MultiHeadAttention, place: tuple[str, int], states: Tensor
    ) -> tuple[Tensor, Back]:
        """Its way back notes what the heads' outputs have, and what the encoder's output has."""
        kind, rules = place[0], self._rules
        if kind == "dec_enc":
            of_memory = module.project_memory(self._memory[None])
            projected = (module.project_queries(states[None]), *of_memory)
        else:
            projected = module.project(states[None])
        queries, keys, values = (x[0] for x in projected)  # [h, p, e]
        weights = DenseAttention(causal=kind == "dec_self").weights(queries, keys)
        context = weights @ values

        def back(relevance: Tensor) -> Tensor:
            joined, output = _flat(context[None])[0], module.output
            of_context = rules.linear(joined, output.weight, output.bias, relevance)
            of_context = of_context.unflatten(2, (module.heads, module.d_head)).transpose(1, 2)
            self._found[place] = of_context.sum((2, 3))
            parts = rules.attention(queries, keys, values, weights, of_context)
            of_queries, *others = map(_flat, parts)
            weight, bias = module.inputs.weight, module.inputs.bias
            if kind != "dec_enc":
                return rules.linear(states, weight, bias, torch.cat([of_queries, *others], -1))
            width = module.heads * module.d_head
            of_memory = torch.cat(others, -1)
            self._of_memory = self._of_memory + rules.linear(
                self._memory, weight[width:], bias[width:], of_memory
            )
            return rules.linear(states, weight[:width], bias[:width], of_queries)

        return module.merge(context[None], None)[0], back


def _flat(by_head: Tensor) -> Tensor:
    """[t, h, p, e] as [t, p, h · e]."""
    return by_head.transpose(1, 2).flatten(2)
