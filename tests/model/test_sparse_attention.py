"""Sparse attention: against its definition for one query, and against a mask of all others."""

import math

import pytest
import torch
from small_models import UNEVEN, make_model, search_of
from torch.nn import functional

from headcount.base.settings.decode import DecodeSettings
from headcount.model.kernels.sparse_attention import SparseAttention
from headcount.search import history

SENTENCES, HEADS, QUERIES, KEYS, WIDTH = 3, 2, 4, 37, 5


def draw(*shape, seed=1):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float32)


def as_search_has_them(seed):
    """Keys or values [n, h, k, e] as a search's room has them, places before heads."""
    return draw(SENTENCES, KEYS + 3, HEADS, WIDTH, seed=seed)[:, :KEYS].transpose(1, 2)


def chosen(count, seed=2):
    """[n, m, t] different places of each query, in any order."""
    return draw(SENTENCES, QUERIES, KEYS, seed=seed).argsort(2)[..., :count]


def seen(places):
    """The mask [n, 1, m, k] that says the same."""
    mask = torch.zeros(SENTENCES, QUERIES, KEYS, dtype=torch.bool)
    return mask.scatter_(2, places, True)[:, None]


@pytest.mark.parametrize("count", [1, 2, 15, 16, 37])
def test_is_what_a_mask_of_all_other_places_gives(count):
    queries = draw(SENTENCES, QUERIES, 3, HEADS, WIDTH, seed=3)[:, :, 1].transpose(1, 2)
    keys, values, places = as_search_has_them(4), as_search_has_them(5), chosen(count)
    found = SparseAttention(places).context(queries, keys, values)
    expected = functional.scaled_dot_product_attention(queries, keys, values, seen(places))
    assert found.shape == (SENTENCES, HEADS, QUERIES, WIDTH)
    torch.testing.assert_close(found, expected, atol=2e-6, rtol=1e-5)


def test_one_layer_leaves_no_scores_to_the_next():
    """All layers of a step share the layout, and with it the memory of their scores."""
    mask = torch.ones(SENTENCES, 1, 5, dtype=torch.bool)
    mask[1, :, 3:] = False  # -∞ is added to these scores
    places, queries = chosen(5), draw(SENTENCES, HEADS, QUERIES, WIDTH, seed=3)
    shared = SparseAttention(places, mask)
    for seed in (4, 6):
        keys, values = as_search_has_them(seed), as_search_has_them(seed + 1)
        expected = SparseAttention(places, mask).context(queries, keys, values)
        assert torch.equal(shared.context(queries, keys, values), expected)
        assert expected.isfinite().all()
        shared.context(queries * math.nan, keys, values)


def test_one_query_by_hand():
    # Dot products with 2 and 0 over √1: weights e^(3·2) and e^0; place 1 is not looked at.
    keys = torch.tensor([2.0, 7.0, 0.0]).view(1, 1, 3, 1)
    values = torch.tensor([10.0, 1e6, 30.0]).view(1, 1, 3, 1)
    sparse = SparseAttention(torch.tensor([[[0, 2]]]))
    found = sparse.context(torch.full((1, 1, 1, 1), 3.0), keys, values)
    expected = (math.exp(6) * 10 + 30) / (math.exp(6) + 1)
    assert found.item() == pytest.approx(expected, rel=1e-6)
    # Weights are in the order in which keys are listed.
    back = SparseAttention(torch.tensor([[[2, 0]]]))
    weights = back.weights(torch.full((1, 1, 1, 1), 3.0), keys)
    expected = torch.tensor([1, math.exp(6)]) / (math.exp(6) + 1)
    torch.testing.assert_close(weights, expected.view(1, 1, 1, 2))


@pytest.mark.parametrize("size", [5, 37])
def test_padding_has_no_part(size):
    """A source's places are all of them, for every query; a mask takes padding out."""
    queries = draw(SENTENCES, HEADS, QUERIES, WIDTH)
    keys, values = (draw(SENTENCES, HEADS, size, WIDTH, seed=seed) for seed in (4, 5))
    mask = torch.arange(size) < torch.tensor([size, 2, 1])[:, None]
    every = torch.arange(size).expand(SENTENCES, QUERIES, -1)
    found = SparseAttention(every, mask[:, None]).context(queries, keys, values)
    expected = functional.scaled_dot_product_attention(
        queries, keys, values, attn_mask=mask[:, None, None]
    )
    torch.testing.assert_close(found, expected, atol=2e-6, rtol=1e-5)
    for sentence, heads in enumerate(values[2]):  # one key is left: its value it is
        torch.testing.assert_close(found[2, sentence], heads[:1].expand(QUERIES, -1))


def test_what_is_not_a_number_is_not_hidden():
    queries, places = draw(SENTENCES, HEADS, QUERIES, WIDTH), chosen(3)
    for spoilt in range(2):
        pair = [as_search_has_them(4), as_search_has_them(5)]
        pair[spoilt][1, 0, places[1, 2, 0]] = math.nan
        found = SparseAttention(places).context(queries, *pair)
        assert found[1, 0, 2].isnan().all()
        assert found[0].isfinite().all()


@pytest.mark.parametrize("heads", [2, UNEVEN])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("short", [80, 17])
def test_a_search_by_masks_finds_the_same(monkeypatch, heads, masked, short):
    """A GPU searches by masks, a CPU by places, but for long sources: one has 18 positions."""
    monkeypatch.setattr(history, "_LONGEST_NAMED", short)
    model = make_model(heads=heads)
    sources = [[4, 8, 5], [7], [4, 8, 5, 6, 6, 7, 4, 5, 8, 8, 4, 6, 5, 7, 4, 4, 6], [6, 5]]
    multiplier = torch.rand(len(sources), model.grid.size) if masked else None
    settings = DecodeSettings(beam=3, max_length_factor=1.0, max_length_extra=9)
    found = []
    for sparse in (True, False):
        search = search_of(model.eval(), sources, settings, multiplier)
        assert search.history.sparse  # this is a CPU
        search.history.sparse = sparse
        search.history.look(search.memory)
        to_source = search.history.cross_attention
        assert isinstance(search.history.self_attention, SparseAttention) == sparse
        assert isinstance(to_source, SparseAttention) == (sparse and short > 17)
        with torch.inference_mode():
            found.append(search.run())
    for one, other in zip(*found, strict=True):
        assert (one.ids, one.steps) == (other.ids, other.steps)
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-5)
