"""Fisher information of the multipliers: by hand, by sentence, and rearranged as brute force is."""

from itertools import combinations

import numpy as np
import pytest
from small_models import TEXT, UNEVEN, make_model, token_slopes

from headcount.base.addresses import HeadGrid
from headcount.base.errors import UserError
from headcount.base.files import write_csv
from headcount.base.settings.importance import ImportanceSettings
from headcount.heads import fisher
from headcount.heads.importance import measure_importance
from headcount.heads.more_measures import one_pass

ONE_LAYER = HeadGrid({"enc_self": (4,), "dec_self": (), "dec_enc": ()})
GRID = HeadGrid({"enc_self": (2, 3), "dec_self": (), "dec_enc": (2,)})


def information(seed: int, grid: HeadGrid, sentences: int = 5) -> np.ndarray:
    """F of derivatives drawn at random, with zeros between layers."""
    slopes = np.random.default_rng(seed).normal(size=(sentences, grid.size))
    found = slopes.T @ slopes / sentences
    kept = np.zeros_like(found)
    for _, _, span in grid.layers():
        kept[span, span] = found[span, span]
    return kept


def test_it_is_the_mean_of_products_of_each_sentences_derivatives():
    model = make_model(heads=UNEVEN).double()
    settings = ImportanceSettings(batch_tokens=14)
    found = one_pass(model, TEXT, settings).fisher
    slopes = [token_slopes(model, n).sum(1).numpy() for n in range(len(TEXT))]
    expected = sum(np.outer(each, each) for each in slopes) / len(TEXT)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)
    squares = measure_importance(model, TEXT, settings.model_copy(update={"abs": "square"}))
    np.testing.assert_allclose(np.diagonal(found), squares, rtol=1e-10)


def test_what_heads_add_together_by_hand():
    """½ (F_00 + F_22 + 2 F_02) = ½ (4 + 9 − 2 · 5) = 1.5: less than head 0 alone adds, 2."""
    table = np.diag([4.0, 1.0, 9.0, 7.0])
    table[0, 2] = table[2, 0] = -5.0
    assert fisher.added_loss(table, [0, 2]) == 1.5
    assert fisher.added_loss(table, [0]) == 2 and fisher.added_loss(table, []) == 0


def test_two_heads_that_cancel_go_in_place_of_the_two_smallest():
    """By the diagonal 1 and 3 go and add ½ (3 + 3.5 + 2 · 3) = 6.25; 0 and 2 add 1.5."""
    table = np.diag([4.0, 3.0, 9.0, 3.5])
    table[0, 2] = table[2, 0] = -5.0
    table[1, 3] = table[3, 1] = 3.0
    # Exchanges one by one: 1 for 0 leaves ½ (4 + 3.5) = 3.75, then 3 for 2 leaves 1.5.
    assert fisher.rearranged(table, ONE_LAYER, 2) == (0, 2)
    assert fisher.rearranged(np.diag(np.diagonal(table)), ONE_LAYER, 2) == (1, 3)


@pytest.mark.parametrize("seed", range(20))
def test_rearranging_keeps_the_number_of_each_layer_and_no_exchange_is_left(seed):
    table = information(seed, GRID)
    for count in range(GRID.size + 1):
        by_diagonal = fisher.rearranged(np.diag(np.diagonal(table)), GRID, count)
        assert by_diagonal == tuple(sorted(np.argsort(np.diagonal(table))[:count].tolist()))
        found = fisher.rearranged(table, GRID, count)
        assert fisher.added_loss(table, list(found)) <= fisher.added_loss(table, list(by_diagonal))
        for _, _, span in GRID.layers():
            layer = range(span.start, span.stop)
            gone = [head for head in found if head in layer]
            assert len(gone) == sum(head in layer for head in by_diagonal)
            exchanged = [
                fisher.added_loss(table, [*set(gone) - {out}, other])
                for out in gone
                for other in set(layer) - set(gone)
            ]
            assert min(exchanged, default=np.inf) >= fisher.added_loss(table, gone) - 1e-9


def test_of_most_layers_the_exchanges_find_the_best_set_there_is():
    """Against every set of two of four heads, of 200 layers: best in most, never far above."""
    best, ratios = 0, []
    for seed in range(200):
        table = information(seed, ONE_LAYER, sentences=8)
        found = fisher.added_loss(table, list(fisher.rearranged(table, ONE_LAYER, 2)))
        least = min(fisher.added_loss(table, list(pair)) for pair in combinations(range(4), 2))
        assert found >= least - 1e-12
        best += found <= least + 1e-9
        ratios.append(found / least)
    assert best >= 180 and np.mean(ratios) < 1.05


def test_in_what_share_of_numbers_a_head_stays_by_hand():
    """Of 3 heads 1 and 2 may go: 1 first, then 0 and 1. 2 stays in both, 0 in one of them."""
    grid = HeadGrid({"enc_self": (3,), "dec_self": (), "dec_enc": ()})
    assert fisher.stays(np.diag([2.0, 1.0, 3.0]), grid).tolist() == [0.5, 0, 1]
    one = HeadGrid({"enc_self": (1,), "dec_self": (), "dec_enc": ()})
    assert fisher.stays(np.ones((1, 1)), one).tolist() == [0]


def test_what_is_written_is_read_again(tmp_path):
    table, path = information(3, GRID), tmp_path / "fisher.csv"
    write_csv(path, fisher.COLUMNS, fisher.fisher_rows(table, GRID))
    assert np.array_equal(fisher.read_fisher(path, GRID), table)
    other = HeadGrid({"enc_self": (3, 2), "dec_self": (), "dec_enc": (2,)})
    told = r"fisher\.csv:4: expected enc_self, 0, 0, 2 and a finite value, found enc_self, 0, 1, 0"
    with pytest.raises(UserError, match=told):
        fisher.read_fisher(path, other)
    rows = fisher.fisher_rows(table, GRID)
    for damaged, told in (
        (
            rows[:-1],
            r"expected 17 rows, found 16; this file belongs to another model, or run scrip",
        ),
        (
            [*rows, rows[0]],
            r"fisher\.csv:19: expected the end of the file, found enc_self, 0, 0, 0",
        ),
        ([[*rows[0][:4], "nan"], *rows[1:]], r"csv:2: expected enc_self, 0, 0, 0 and a finite v"),
    ):
        write_csv(path, fisher.COLUMNS, damaged)
        with pytest.raises(UserError, match=told):
            fisher.read_fisher(path, GRID)
