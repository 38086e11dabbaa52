"""Attention weights on request: what the fused path uses, shown one layer at a time."""

import pytest
import torch
from small_models import TEXT, UNEVEN, attention_of, make_model

from headcount.heads.head_measures import OUTSIDE, token_numbers, word_attention
from headcount.model.attention import DenseAttention
from headcount.model.transformer import watch_attention


@pytest.fixture(scope="module", params=["pre", "post"])
def seen(request):
    """A model, and every layer's weights with what the fused path made of the same inputs."""
    model = make_model(norm=request.param, heads=UNEVEN)
    batch = TEXT.batch([0, 1, 2])
    found, fused = {}, {}
    handles = [
        attention_of(model, kind, layer).register_forward_hook(
            lambda module, args, out, key=(kind, layer): fused.update({key: (args, out)})
        )
        for kind, layers in UNEVEN.items()
        for layer in range(len(layers))
    ]
    keep = lambda kind, layer, weights: found.update({(kind, layer): weights})  # noqa: E731
    with watch_attention(model, keep), torch.no_grad():
        watched = model.decode(batch.tgt_in, model.encode(batch.src))
    for handle in handles:
        handle.remove()
    return model, batch, found, fused, watched


def test_weights_times_values_are_what_the_fused_path_computes(seen):
    model, _, found, fused, _ = seen
    assert set(found) == {(kind, n) for kind, layers in UNEVEN.items() for n in range(len(layers))}
    for (kind, layer), weights in found.items():
        (_, _, values, *_), output = fused[kind, layer]
        own = attention_of(model, kind, layer).merge(weights @ values, None)
        torch.testing.assert_close(own, output, atol=1e-5, rtol=1e-5)


def test_rows_sum_to_one_and_see_neither_padding_nor_the_future(seen):
    _, batch, found, *_ = seen
    for (kind, _), weights in found.items():
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
        if kind == "dec_self":
            assert (weights.triu(1) == 0).all()
        else:
            padded = (batch.src == 0)[:, None, None, :].expand_as(weights)
            assert padded.any() and (weights[padded] == 0).all()


def test_watching_changes_nothing(seen):
    model, batch, _, _, watched = seen
    with torch.no_grad():
        assert torch.equal(model.decode(batch.tgt_in, model.encode(batch.src)), watched)


def test_layers_without_heads_are_passed_over():
    model = make_model(heads={**UNEVEN, "enc_self": [0, 2]})
    found = []
    with watch_attention(model, lambda kind, layer, weights: found.append((kind, layer))):
        model.encode(TEXT.batch([0]).src)
    assert found == [("enc_self", 1)]


def test_scores_are_scaled_by_the_width_of_a_head():
    queries = torch.tensor([[[[2.0, 0, 0, 0]]]])
    keys = torch.tensor([[[[3.0, 0, 0, 0], [0.0] * 4]]])
    # Scores 6 / √4 = 3 and 0.
    expected = torch.tensor([3.0, 0.0]).softmax(0)
    torch.testing.assert_close(DenseAttention().weights(queries, keys)[0, 0, 0], expected)


# Two tokens, the first of two pieces, then EOS; a row for each piece.
PIECES = [[["a@@", "b"], ["c"]]]
ROWS = [[0.1, 0.2, 0.3, 0.4], [0.5, 0.1, 0.4, 0], [0.2, 0.3, 0.1, 0.4], [1, 0, 0, 0]]
WEIGHTS = torch.tensor([[ROWS]])


def test_attention_between_words():
    """To token 1: 0.3 and 0.6 from its pieces, 0.5 from token 2. To token 2: 0.3, 0.4; 0.1."""
    numbers = token_numbers(PIECES)
    found = word_attention(WEIGHTS, numbers, numbers)
    torch.testing.assert_close(found, torch.tensor([[[[0.45, 0.35], [0.5, 0.1]]]]))


def test_eos_and_padding_are_no_tokens():
    assert token_numbers(PIECES, 1, 1).tolist() == [[OUTSIDE, 0, 0, 1, OUTSIDE, OUTSIDE]]
    assert token_numbers([*PIECES, [["d"]]]).tolist() == [[0, 0, 1, OUTSIDE], [0] + [OUTSIDE] * 3]
