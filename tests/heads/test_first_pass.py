"""Fisher information, output norms and mean outputs of heads, and ablation by their means."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_models import TEXT, UNEVEN, make_model, one_pair, token_slopes

from headcount.base.addresses import HeadGrid
from headcount.base.settings.heads import ImportanceSettings, MeasuresSettings
from headcount.heads.importance import measure_importance
from headcount.heads.measures_files import rearranged, stays
from headcount.heads.more_measures import HeadOutputs, Passes
from headcount.model.loss import token_losses
from headcount.model.removal import remove_units, set_means

ONE_LAYER = HeadGrid({"enc_self": (4,), "dec_self": (), "dec_enc": ()})
GRID = HeadGrid({"enc_self": (2, 3), "dec_self": (), "dec_enc": (2,)})


def information(seed: int, grid: HeadGrid, sentences: int = 5) -> np.ndarray:
    """F of derivatives drawn at random, with zeros between layers."""
    slopes = np.random.default_rng(seed).normal(size=(sentences, grid.size))
    whole = slopes.T @ slopes / sentences
    table = np.zeros_like(whole)
    for _, _, span in grid.layers():
        table[span, span] = whole[span, span]
    return table


def added_loss(table: np.ndarray, masked: list[int] | tuple[int, ...]) -> float:
    """½ (1 − m)ᵀ F (1 − m) for a mask of these heads."""
    return float(table[np.ix_(list(masked), list(masked))].sum()) / 2


def test_it_is_the_mean_of_products_of_each_sentences_derivatives():
    model = make_model(heads=UNEVEN).double()
    settings = ImportanceSettings(batch_tokens=14)
    table, _ = Passes(model, TEXT, settings, MeasuresSettings()).first
    slopes = [token_slopes(model, n).sum(1).numpy() for n in range(len(TEXT))]
    expected = sum(np.outer(of_one, of_one) for of_one in slopes) / len(TEXT)
    np.testing.assert_allclose(table, expected, rtol=1e-5, atol=1e-8)
    squares = measure_importance(model, TEXT, settings.model_copy(update={"abs": "square"}))
    np.testing.assert_allclose(np.diagonal(table), squares, rtol=1e-10)


def test_two_heads_that_cancel_go_in_place_of_the_two_smallest():
    """By the diagonal 1 and 3 go and add ½ (3 + 3.5 + 2 · 3) = 6.25; 0 and 2 add 1.5."""
    table = np.diag([4.0, 3.0, 9.0, 3.5])
    table[0, 2] = table[2, 0] = -5.0
    table[1, 3] = table[3, 1] = 3.0
    # Exchanges one by one: 1 for 0 leaves ½ (4 + 3.5) = 3.75, then 3 for 2 leaves 1.5.
    assert rearranged(table, ONE_LAYER, 2) == (0, 2)
    assert rearranged(np.diag(np.diagonal(table)), ONE_LAYER, 2) == (1, 3)


@given(st.integers(0, 2**32), st.integers(0, GRID.size))
def test_rearranging_keeps_the_number_of_each_layer_and_no_exchange_is_left(seed, count):
    table = information(seed, GRID)
    by_diagonal = rearranged(np.diag(np.diagonal(table)), GRID, count)
    assert by_diagonal == tuple(sorted(np.argsort(np.diagonal(table))[:count].tolist()))
    masked = rearranged(table, GRID, count)
    assert added_loss(table, masked) <= added_loss(table, by_diagonal) + 1e-12
    for _, _, span in GRID.layers():
        layer = range(span.start, span.stop)
        gone = [head for head in masked if head in layer]
        assert len(gone) == sum(head in layer for head in by_diagonal)
        for out in gone:
            for other in set(layer) - set(gone):
                exchanged = [*set(gone) - {out}, other]
                assert added_loss(table, exchanged) >= added_loss(table, gone) - 1e-9


def test_in_what_share_of_numbers_a_head_stays_by_hand():
    """Of 3 heads 1 and 2 may go: 1 first, then 0 and 1. 2 stays in both, 0 in one of them."""
    grid = HeadGrid({"enc_self": (3,), "dec_self": (), "dec_enc": ()})
    assert stays(np.diag([2.0, 1.0, 3.0]), grid).tolist() == [0.5, 0, 1]
    one = HeadGrid({"enc_self": (1,), "dec_self": (), "dec_enc": ()})
    assert stays(np.ones((1, 1)), one).tolist() == [0]


BATCH = TEXT.batch([0, 1, 2])
WIDE = {"heads": {"enc_self": [2, 0], "dec_self": [1, 1, 1], "dec_enc": [1, 0, 1]}, "d_head": 12}


@pytest.fixture
def model():
    return make_model(heads=UNEVEN).double()


def seen(model) -> HeadOutputs:
    return Passes(model, TEXT, ImportanceSettings(), MeasuresSettings()).first[1]


def outputs_of(model, number: int) -> dict[tuple[str, int], torch.Tensor]:
    """What enters each W_O [positions, heads · e], of one sentence, where nothing is padded."""
    found = {}
    hooks = [
        module.output.register_forward_pre_hook(
            lambda _, inputs, key=(kind, layer): found.update({key: inputs[0][0]})
        )
        for kind, layer, module in model.attentions()
    ]
    with torch.no_grad():
        token_losses(model, one_pair(TEXT, number).batch([0]))
    for hook in hooks:
        hook.remove()
    return found


@pytest.mark.parametrize("changes", [{}, WIDE], ids=["uneven", "wider than the model"])
def test_norms_and_means_are_those_of_all_real_positions(changes):
    """Sentences of unequal lengths in one batch, against each alone; W_O^h c in full."""
    model = make_model(**{"heads": UNEVEN, **changes}).double()
    alone = [outputs_of(model, number) for number in range(len(TEXT))]
    found = seen(model)
    for kind, layer, module in model.attentions():
        entering = torch.cat([each[kind, layer] for each in alone])
        lengths = TEXT.lengths[0 if kind == "enc_self" else 1]
        assert len(entering) == lengths.sum()  # with EOS, or BOS in its place
        for head, place in enumerate(range(*model.grid.span(kind, layer).indices(99))):
            columns = slice(head * module.d_head, (head + 1) * module.d_head)
            own = entering[:, columns]
            added = own @ module.output.weight[:, columns].detach().T
            assert found.norms()[place] == pytest.approx(float(added.norm(dim=1).mean()), rel=1e-9)
            np.testing.assert_allclose(found.means()[place], own.mean(0), rtol=1e-9, atol=1e-12)


def under_means(model, multiplier) -> torch.Tensor:
    with torch.no_grad():
        return token_losses(model, BATCH, multiplier)


def test_a_silent_head_gives_its_mean_by_hand(model):
    """With h · W_O^h μ in the bias and zero columns; half a head gives half of either."""
    means = torch.randn(17, 4, generator=torch.Generator().manual_seed(2)).double()
    set_means(model, means)
    ones = torch.ones(17).double()
    assert torch.equal(under_means(model, ones), under_means(model, None))
    changed = make_model(heads=UNEVEN).double()
    place, attention = 15, changed.decoder[1].cross  # its last head, of dec_enc layer 1 (2 to 4)
    for share in (0.0, 0.5):
        multiplier = ones.clone()
        multiplier[place] = share
        with torch.no_grad():
            original = model.decoder[1].cross.output
            columns = original.weight[:, 8:]
            attention.output.weight[:, 8:] = share * columns
            attention.output.bias[:] = original.bias + (1 - share) * columns @ means[place]
            expected = token_losses(changed, BATCH)
        torch.testing.assert_close(under_means(model, multiplier), expected, rtol=0, atol=1e-12)
        rows = multiplier.repeat(3, 1)
        torch.testing.assert_close(under_means(model, rows), expected, rtol=0, atol=1e-12)
    found = under_means(model, multiplier)
    set_means(model, None)
    assert not torch.allclose(under_means(model, multiplier), found)  # zeros again


def test_removed_with_their_means_folded_they_give_what_mean_ablation_gives(model):
    draw = torch.Generator().manual_seed(1)
    set_means(model, torch.randn(17, 4, generator=draw).double())
    multiplier = (torch.rand(17, generator=draw) > 0.5).double()
    multiplier[0] = 0.3
    for mask in (multiplier, 0 * multiplier):
        smaller = remove_units(model, mask)
        assert smaller.grid.size == int(mask.count_nonzero()) < 17
        assert all(module.means is None for _, _, module in smaller.attentions())
        torch.testing.assert_close(
            under_means(smaller, None), under_means(model, mask), rtol=0, atol=1e-12
        )
