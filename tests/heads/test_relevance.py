"""Relevance propagation: what it conserves, its Jacobians, and an example by hand."""

import numpy as np
import pytest
import torch
from small_models import TEXT, UNEVEN, make_model
from torch import nn

from headcount.heads import lrp_rules
from headcount.heads.lrp_rules import Rules, attention_parts, norm_jacobian
from headcount.heads.relevance import relevance_values, sentence_relevance
from headcount.model.attention import DenseAttention

DRAW = torch.Generator().manual_seed(7)


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=DRAW, dtype=torch.float64)


def sizes(relevance: torch.Tensor) -> torch.Tensor:
    """Sum of sizes of each generation step."""
    return relevance.abs().flatten(1).sum(1)


BOTH = pytest.mark.parametrize("rule", ["alpha_beta", "ratio"])


@BOTH
def test_modules_conserve_relevance(rule):
    own, inputs, relevance = Rules(rule), draw(3, 5), draw(2, 3, 4).abs()
    found = own.linear(inputs, draw(4, 5), draw(4), relevance)
    assert found.shape == (2, 3, 5)
    torch.testing.assert_close(sizes(found), sizes(relevance))
    norm, relevance = nn.LayerNorm(5).double(), draw(2, 3, 5).abs()
    torch.testing.assert_close(sizes(own.norm(inputs, norm, relevance)), sizes(relevance))
    both = own.residual(draw(3, 5), draw(3, 5), relevance)
    torch.testing.assert_close(sum(map(sizes, both)), sizes(relevance))


@BOTH
@pytest.mark.parametrize("turns", [False, True])
def test_attention_conserves_the_relevance_of_every_head(rule, turns, monkeypatch):
    if turns:
        monkeypatch.setattr(lrp_rules, "LARGEST", 0)  # heads one at a time
    queries, keys, values = draw(3, 4, 2), draw(3, 5, 2), draw(3, 5, 2)
    relevance = draw(6, 3, 4, 2).abs()
    weights = DenseAttention().weights(queries, keys)
    parts = Rules(rule).attention(queries, keys, values, weights, relevance)
    assert [part.shape[1:] for part in parts] == [x.shape for x in (queries, keys, values)]
    total = sum(part.abs().sum((2, 3)) for part in parts)
    torch.testing.assert_close(total, relevance.abs().sum((2, 3)))


def test_contributions_through_the_softmax_are_those_of_autograd():
    queries, keys, values = draw(2, 3, 4), draw(2, 5, 4), draw(2, 5, 4)

    def outputs(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return DenseAttention().weights(q, k) @ v

    by_q, by_k, by_v = torch.autograd.functional.jacobian(outputs, (queries, keys, values))
    weights = DenseAttention().weights(queries, keys)
    by_query, by_key = attention_parts(queries, keys, values, weights)
    for head in range(2):
        own_q = by_q[head, :, :, head] * queries[head]  # [q, e, q', f]
        for position in range(3):
            torch.testing.assert_close(own_q[position, :, position], by_query[head, position])
        torch.testing.assert_close(by_k[head, :, :, head] * keys[head], by_key[head])
        # A value contributes to its own column alone, by its weight.
        own_v = by_v[head, :, :, head] * values[head]
        expected = weights[head][:, None, :, None] * torch.diag_embed(values[head]).transpose(0, 1)
        torch.testing.assert_close(own_v, expected)


def test_the_jacobian_of_layer_norm_is_that_of_autograd():
    norm = nn.LayerNorm(5, eps=1e-3).double()
    with torch.no_grad():
        norm.weight.copy_(draw(5))
    inputs = draw(3, 5)
    whole = torch.autograd.functional.jacobian(norm, inputs)
    expected = torch.stack([whole[p, :, p] for p in range(3)])
    torch.testing.assert_close(norm_jacobian(inputs, norm), expected)


def test_two_heads_by_hand():
    # Heads of width 1 with outputs 2 and 1; y1 = 3·c1 − 4·c2 = 6 − 4, y2 = 1·c1 + 6·c2 = 2 + 6.
    outputs, weight = torch.tensor([[2.0, 1.0]]), torch.tensor([[3.0, -4.0], [1.0, 6.0]])
    relevance = torch.tensor([[[0.5, 0.5]]])
    # Ratio. y1: 6/2 and −4/2; y2: 2/8 and 6/8. Sums 3.25/2 and −1.25/2, sizes 2.25: times 4/9.
    found = Rules("ratio").linear(outputs, weight, None, relevance)
    torch.testing.assert_close(found[0, 0], torch.tensor([13.0, -5.0]) / 18, atol=1e-4, rtol=1e-4)
    # Alpha-beta. y1: half to its positive part, all of c1's, half to its negative, all of c2's;
    # y2: half of 2/8 and 6/8. (0.5 + 0.125)/2 and (0.5 + 0.375)/2 add up to 0.75: times 4/3.
    found = Rules("alpha_beta").linear(outputs, weight, None, relevance)
    torch.testing.assert_close(found[0, 0], torch.tensor([5.0, 7.0]) / 12, atol=1e-4, rtol=1e-4)
    # A bias of 4 at y2, spread, makes its parts 4 and 8: half of a third and of two thirds.
    found = Rules("alpha_beta").linear(outputs, weight, torch.tensor([0.0, 4.0]), relevance)
    expected = torch.tensor([0.5 + 1 / 6, 0.5 + 1 / 3]) / 1.5
    torch.testing.assert_close(found[0, 0], expected, atol=1e-4, rtol=1e-4)


@BOTH
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("heads", [UNEVEN, {**UNEVEN, "enc_self": [0, 2], "dec_enc": [2, 0, 1]}])
def test_sizes_of_every_layer_sum_to_one(norm, rule, heads):
    model = make_model(norm=norm, heads=heads)
    found = sentence_relevance(model, TEXT.src[0], TEXT.tgt[1], rule)
    assert found.shape == (len(TEXT.tgt[1]) + 1, model.grid.size)  # a step for EOS too
    assert (found < 0).any() == (rule == "ratio")
    for _, _, span in model.grid.layers():
        if span.stop > span.start:
            torch.testing.assert_close(found[:, span].abs().sum(1), torch.ones(len(found)))


def test_a_head_without_output_has_no_relevance():
    model = make_model(d_head=4)
    with torch.no_grad():
        model.encoder[1].attention.output.weight[:, 4:8] = 0  # the second of three heads
        model.encoder[1].attention.output.bias.zero_()  # a spread bias gives every input something
    found = sentence_relevance(model, TEXT.src[0], TEXT.tgt[0], "alpha_beta")
    of_layer = found[:, model.grid.span("enc_self", 1)]
    assert (of_layer[:, 1] == 0).all() and (of_layer[:, [0, 2]] > 0).all()


def test_means_are_over_steps_and_intervals_over_sentences():
    # Sentences of 1 and 3 steps.
    found = relevance_values(np.array([[0.5, 0.5], [2.1, 0.9]]), np.array([1, 3]))
    np.testing.assert_allclose(found["relevance"], [2.6 / 4, 1.4 / 4])
    # Half of the resamples have both; a quarter each has one of them twice.
    np.testing.assert_allclose(found["relevance_low"], [0.5, 0.3])
    np.testing.assert_allclose(found["relevance_high"], [0.7, 0.5])
