"""The walk of relevance through a whole model, against one that knows nothing but its modules.

The reference writes every module's inputs and outputs on a tape, in the order in which they are
computed, and plays it back with Jacobians from autograd. Only the rules stand here once more.
"""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from small_models import TEXT, UNEVEN, make_model
from torch import Tensor
from torch.func import jacrev, vjp, vmap
from torch.nn.functional import normalize

from headcount.data.batches import ParallelText
from headcount.data.vocabulary import BOS, EOS
from headcount.heads.relevance import sentence_relevance

pytestmark = pytest.mark.slow  # a step from files to files, or models that are trained

Back = Callable[[Tensor], tuple[Tensor, ...]]


class Tape:
    """Modules run on one sentence [positions, width]; relevance has generation steps in front."""

    def __init__(self, model, rule: str):
        self.model, self.rule = model, rule
        self.played: list[tuple[Tensor, tuple[Tensor, ...], Back]] = []
        self.contexts: list[Tensor] = []  # [heads, positions, width of one] each

    def note(self, output: Tensor, inputs: tuple[Tensor, ...], back: Back) -> Tensor:
        self.played.append((output, inputs, back))
        return output

    def shares(self, parts: Tensor, dim: int) -> Tensor:
        if self.rule == "ratio":
            total = parts.sum(dim, keepdim=True)
            return parts / (total + 1e-5 * torch.where(total < 0, -1.0, 1.0))
        plus, minus = parts.clamp(min=0), parts.clamp(max=0)
        share = plus / (plus.sum(dim, keepdim=True) + 1e-5)
        return (share + minus / (minus.sum(dim, keepdim=True) - 1e-5)) / 2

    def each(self, x: Tensor, run: Callable[[Tensor], Tensor]) -> Tensor:
        """A map of every position by itself; its value at 0 is spread over the inputs."""
        parts = vmap(jacrev(run))(x) * x[:, None] + run(torch.zeros_like(x[0]))[:, None] / len(x.T)

        def back(relevance: Tensor) -> tuple[Tensor]:
            return scaled(
                (torch.einsum("tpj,pji->tpi", relevance, self.shares(parts, 2)),), relevance
            )

        return self.note(vmap(run)(x), (x,), back)

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return self.each(x, lambda row: weight @ row + bias)

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        share = self.shares(torch.stack([x, y]), 0)
        return self.note(x + y, (x, y), lambda r: scaled((share[0] * r, share[1] * r), r))

    def heads(self, x: Tensor, block: int, blocks: int, heads: int) -> Tensor:
        """One block of joined projections, [heads, positions, width of one]."""

        def cut(joined: Tensor) -> Tensor:
            return joined.unflatten(-1, (blocks, heads, -1))[:, block].transpose(0, 1)

        return self.note(cut(x), (x,), lambda r: (vmap(vjp(cut, x)[1])(r)[0],))

    def attend(self, q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
        """Context of all heads, side by side: [positions, heads times width]."""
        future = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).triu(1) & causal

        def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            scores = (q @ k.T / q.shape[1] ** 0.5).masked_fill(future, -torch.inf)
            return scores.softmax(1) @ v

        def back(relevance: Tensor) -> tuple[Tensor, ...]:
            found = []
            for one, r in zip(zip(q, k, v, strict=True), relevance.unbind(1), strict=True):
                jacobians = jacrev(run, (0, 1, 2))(*one)
                parts = [(j * x).flatten(2) for j, x in zip(jacobians, one, strict=True)]
                split = self.shares(torch.cat(parts, 2), 2).split([p.shape[2] for p in parts], 2)
                given = [torch.einsum("tqe,qei->ti", r, share) for share in split]
                sized = zip(given, one, strict=True)
                found.append(scaled(tuple(g.view(-1, *x.shape) for g, x in sized), r))
            return tuple(torch.stack(each, 1) for each in zip(*found, strict=True))

        context = self.note(torch.stack([*map(run, q, k, v)]), (q, k, v), back)
        self.contexts.append(context)
        sizes = context.shape[::2]
        joined = context.transpose(0, 1).flatten(1)
        return self.note(joined, (context,), lambda r: (r.unflatten(2, sizes).transpose(1, 2),))

    def attention(self, own, memory: Tensor | None, causal: bool, x: Tensor) -> Tensor:
        weight, bias, width = own.inputs.weight, own.inputs.bias, own.heads * own.d_head
        if memory is None:
            joined = self.linear(x, weight, bias)
            qkv = [self.heads(joined, block, 3, own.heads) for block in range(3)]
        else:
            queries = self.linear(x, weight[:width], bias[:width])
            others = self.linear(memory, weight[width:], bias[width:])
            qkv = [self.heads(queries, 0, 1, own.heads)]
            qkv += [self.heads(others, block, 2, own.heads) for block in range(2)]
        return self.linear(self.attend(*qkv, causal), own.output.weight, own.output.bias)

    def feed(self, own, x: Tensor) -> Tensor:
        inner = self.linear(x, own.inner.weight, own.inner.bias)
        active = self.note(inner.relu(), (inner,), lambda r: (r,))
        return self.linear(active, own.outer.weight, own.outer.bias)

    def around(self, residual, x: Tensor, run: Callable[[Tensor], Tensor]) -> Tensor:
        if self.model.settings.norm == "pre":
            return self.add(x, run(self.each(x, residual.norm)))
        return self.each(self.add(x, run(x)), residual.norm)

    def stack(self, x: Tensor, layers, memory: Tensor | None, norm) -> Tensor:
        for layer in layers:
            own = partial(self.attention, layer.attention, None, memory is not None)
            x = self.around(layer.around_attention, x, own)
            if memory is not None:
                look = partial(self.attention, layer.cross, memory, False)
                x = self.around(layer.around_cross, x, look)
            feed = partial(self.feed, layer.feed_forward)
            x = self.around(layer.around_feed_forward, x, feed)
        return self.each(x, norm) if self.model.settings.norm == "pre" else x

    def play_back(self, output: Tensor, relevance: Tensor) -> list[Tensor]:
        """Relevance of the contexts, [steps, heads, positions, width of one] each."""
        found = {id(output): relevance}
        for output, inputs, back in reversed(self.played):
            for each, own in zip(inputs, back(found[id(output)]), strict=True):
                found[id(each)] = found.get(id(each), 0) + own
        return [found[id(context)] for context in self.contexts]


def scaled(found: tuple[Tensor, ...], given: Tensor) -> tuple[Tensor, ...]:
    """With sizes that sum, for each step, to what was given."""
    after = sum(each.abs().flatten(1).sum(1) for each in found)
    factor = given.abs().flatten(1).sum(1) / after
    return tuple(each * factor.view(-1, *[1] * (each.ndim - 1)) for each in found)


def reference(model, src: list[int], tgt: list[int], rule: str) -> tuple[Tensor, Tensor]:
    """Relevance [steps, heads in flat order], and the logits."""
    tape = Tape(model, rule)
    inputs = [torch.tensor([*src, EOS]), torch.tensor([BOS, *tgt])]
    tables = (model.src_embedding, model.tgt_embedding)
    source, target = (
        table.weight[ids] * model.scale + model.sines[: len(ids)]
        for table, ids in zip(tables, inputs, strict=True)
    )
    memory = tape.stack(source, model.encoder, None, model.encoder_norm)
    output = tape.stack(target, model.decoder, memory, model.decoder_norm)
    bias = torch.zeros(1).double() if model.output_bias is None else model.output_bias
    logits = output @ model.tgt_embedding.weight.T + bias
    words = logits.argmax(1)
    bias = bias.expand(logits.shape[1])[words, None] / output.shape[1]
    start = tape.shares(model.tgt_embedding.weight[words] * output + bias, 1)
    start = start / start.abs().sum(1, keepdim=True)
    found = tape.play_back(output, start[None] * torch.eye(len(start))[..., None])
    layers = len(model.encoder)
    in_order = [*found[:layers], *found[layers::2], *found[layers + 1 :: 2]]
    shares = [normalize(context.sum((2, 3)), p=1, dim=1) for context in in_order]
    return torch.cat(shares, 1), logits


@pytest.mark.parametrize(("norm", "output_bias"), [("pre", False), ("post", False), ("post", True)])
@pytest.mark.parametrize("rule", ["alpha_beta", "ratio"])
def test_the_whole_walk_is_that_of_the_reference(norm, output_bias, rule):
    model = make_model(heads=UNEVEN, norm=norm, output_bias=output_bias)
    model = model.double().requires_grad_(False)
    src, tgt = TEXT.src[0], TEXT.tgt[0]
    expected, logits = reference(model, src, tgt, rule)
    batch = ParallelText([src], [tgt]).batch([0])
    own = model.logits(model.decode(batch.tgt_in, model.encode(batch.src)))[0]
    torch.testing.assert_close(logits, own)  # the reference's model is the model
    found = sentence_relevance(model, src, tgt, rule)
    torch.testing.assert_close(found, expected)
