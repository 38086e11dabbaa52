"""Relevance of heads to the words that a model predicts, propagated from a logit back.

Letters in shapes: t generation steps of one sentence, p positions, q target and k source positions,
d width of the model, h heads, e width of one.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from tqdm import tqdm

from headcount.base.files import write_result
from headcount.base.head_values import COLUMNS, head_rows
from headcount.base.settings.heads import LrpSettings
from headcount.data.batches import Ids, ParallelText
from headcount.heads.lrp_rules import Rules, rescaled
from headcount.model.attention import DenseAttention, MultiHeadAttention
from headcount.model.layers import DecoderLayer, FeedForward
from headcount.model.transformer import Transformer, first_device, watch_inputs
from headcount.scoring.bootstrap import SEED
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

RESAMPLES = 1000
Back = Callable[[Tensor], Tensor]  # from relevance of a module's output to relevance of its input


def write_relevance(
    folder: ModelFolder, pair: PairFolder, settings: LrpSettings, out: Path, origin: dict[str, Any]
) -> None:
    """Write a CSV of the relevance of every head by both rules, and a JSON of the same name."""
    folder.check(pair)
    text = pair.first_pairs("dev", settings.max_sentences)
    model = folder.load(settings.device)
    begun = time.perf_counter()
    other = "ratio" if settings.rule == "alpha_beta" else "alpha_beta"
    with tqdm(total=2 * len(text), unit="sentence", disable=None) as bar:
        (sums, steps), (others, _) = (
            measure_relevance(model, text, rule, bar) for rule in (settings.rule, other)
        )
    values = relevance_values(sums, steps) | {f"relevance_{other}": others.sum(0) / steps.sum()}
    facts = {"sentences": len(text), "steps": int(steps.sum())}
    facts |= {"seconds": round(time.perf_counter() - begun, 2), "provenance": origin}
    write_result(out, COLUMNS, head_rows(model.grid.heads(), values), facts)


def measure_relevance(
    model: Transformer, text: ParallelText, rule: str, bar: tqdm
) -> tuple[np.ndarray, np.ndarray]:
    """Return relevance summed over steps, [sentences, heads], and the steps, [sentences]."""
    by_step = []
    for src, tgt in zip(text.src, text.tgt, strict=True):
        by_step.append(sentence_relevance(model, src, tgt, rule).double().cpu().numpy())
        bar.update()
    return np.stack([steps.sum(0) for steps in by_step]), np.array([*map(len, by_step)])


def relevance_values(sums: np.ndarray, steps: np.ndarray) -> dict[str, np.ndarray]:
    """Return the mean over steps, [heads], and its 95 % bootstrap interval over sentences."""
    drawn = np.random.default_rng(SEED).integers(len(steps), size=(RESAMPLES, len(steps)))
    means = sums[drawn].sum(1) / steps[drawn].sum(1)[:, None]
    low, high = np.quantile(means, (0.025, 0.975), axis=0)
    mean = sums.sum(0) / steps.sum()
    return {"relevance": mean, "relevance_low": low, "relevance_high": high}


@torch.inference_mode()
def sentence_relevance(model: Transformer, src: Ids, tgt: Ids, rule: str) -> Tensor:
    """Return the relevance [t, heads in flat order] of every head at every step of a sentence.

    At each step the model's likeliest next word after the words of `tgt` has relevance 1. A head's
    relevance is the sum over its outputs, divided by the sum of sizes over the heads of its layer
    and kind. Source: Voita et al. 2019, section 4 and appendix A.
    """
    batch = ParallelText([src], [tgt]).batch([0], first_device(model))
    stacks = (*model.encoder, model.encoder_norm, *model.decoder, model.decoder_norm)
    with watch_inputs(stacks) as entering:
        outputs = model.eval().decode(batch.tgt_in, model.encode(batch.src))[0]
    states = {module: inputs[0] for module, inputs in entering.items()}
    walk = _Walk(model, states, Rules(rule))
    walk.decoder(outputs, model.logits(outputs).argmax(-1))
    walk.encoder()
    return torch.cat([walk.shares(kind) for kind in model.grid.counts], 1)


class _Walk:
    """Relevance of one sentence on its way back, and the relevance of all heads so far."""

    def __init__(self, model: Transformer, states: dict[nn.Module, Tensor], rules: Rules):
        """`states`: inputs of every layer and of both last norms, [p, d]."""
        self._model, self._states, self._rules = model, states, rules
        self._heads: dict[tuple[str, int], Tensor] = {}  # [t, h] by kind and layer
        self._memory = model.encoder_norm(states[model.encoder_norm])  # [k, d]
        self._of_memory = None  # its relevance, [t, k, d]

    def shares(self, kind: str) -> Tensor:
        """Return the relevance of all heads of a kind, [t, h]. Sizes of a layer sum to 1."""
        layers = [self._heads[kind, layer] for layer in range(len(self._model.grid.counts[kind]))]
        return torch.cat([functional.normalize(layer, p=1, dim=1) for layer in layers], 1)

    def decoder(self, outputs: Tensor, words: Tensor) -> None:
        """Go from the logits of `words` [t], made of `outputs` [q, d], to the first layer."""
        model, rules = self._model, self._rules
        bias = None if model.output_bias is None else model.output_bias[words]
        share = rules.shares(rules.with_bias(model.tgt_embedding.weight[words] * outputs, bias))
        share = rescaled(share, torch.ones_like(share[:, :1]), (1,))
        relevance = torch.diag_embed(share.t()).permute(1, 2, 0)  # step t looks at position t
        self._of_memory = torch.zeros_like(self._memory).expand(len(words), -1, -1)
        self._stack(model.decoder, model.decoder_norm, relevance)

    def encoder(self) -> None:
        """Go from the encoder's output to the first layer."""
        self._stack(self._model.encoder, self._model.encoder_norm, self._of_memory)

    def _stack(self, layers: nn.ModuleList, norm: nn.Module, relevance: Tensor) -> None:
        """Go back through all layers from the relevance [t, p, d] of their last norm's output."""
        relevance = self._rules.norm(self._states[norm], norm, relevance)
        for number, layer in reversed(list(enumerate(layers))):
            decoder = isinstance(layer, DecoderLayer)
            kind = "dec_self" if decoder else "enc_self"
            runs = [(layer.around_attention, self._attention, layer.attention, (kind, number))]
            if decoder:
                runs.append((layer.around_cross, self._attention, layer.cross, ("dec_enc", number)))
            runs.append((layer.around_feed_forward, self._feed_forward, layer.feed_forward))
            relevance = self._layer(self._states[layer], runs, relevance)

    def _layer(self, start: Tensor, runs: Sequence[tuple], relevance: Tensor) -> Tensor:
        """Return the relevance of a layer's input. `runs`: residual, method, its arguments."""
        passed = []
        for around, run, *arguments in runs:
            added, back = run(*arguments, around.enter(start))
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
        """Return the output, and the way back, which ignores the activation."""
        active = module.activation(module.inner(states))

        def back(relevance: Tensor) -> Tensor:
            outer, inner = module.outer, module.inner
            relevance = self._rules.linear(active, outer.weight, outer.bias, relevance)
            return self._rules.linear(states, inner.weight, inner.bias, relevance)

        return module.outer(active), back

    def _attention(
        self, module: MultiHeadAttention, place: tuple[str, int], states: Tensor
    ) -> tuple[Tensor, Back]:
        """Return the output. The way back records relevance of heads and of the memory."""
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
            self._heads[place] = of_context.sum((2, 3))
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
    """Return [t, h, p, e] as [t, p, h · e]."""
    return by_head.transpose(1, 2).flatten(2)
