"""Tables of several pairs with one model, against numbers worked out by hand."""

import pandas as pd
import pytest
from scipy.stats import spearmanr

from headcount.analysis.outputs import chapters
from headcount.analysis.tables.many_pairs import pairs as table
from headcount.analysis.writer import readable_table

SCORES = ("pruned_on", "draw", "score", "delta", "delta_low", "delta_high")
PLAIN = ["importance", "importance_first_half", "importance_second_half"]


def importance(values: dict[str, list[list[float]]], seed: int = 1) -> pd.DataFrame:
    """Values of 8 heads by pair: over all data, and over either half."""
    rows = [
        (pair, "baseline", seed, "enc_self", 0, head, statistic, value)
        for pair, columns in values.items()
        for statistic, column in zip(PLAIN, columns, strict=True)
        for head, value in enumerate(column)
    ]
    columns = ["pair", "run", "seed", "kind", "layer", "head", "statistic", "value"]
    return pd.DataFrame(rows, columns=columns)


UP = [1.0, 2, 3, 4, 5, 6, 7, 8]
SWAPPED = [2.0, 1, 3, 4, 5, 6, 8, 7]  # rank correlation 1 - 6 * 4 / (8 * 63) with UP
DOWN = UP[::-1]


def test_two_pairs_agree_as_their_ranks_do():
    found = table.ranks(importance({"a": [UP, UP, SWAPPED], "b": [SWAPPED, UP, UP]}))
    (row,) = found.to_dict("records")
    assert (row["pair"], row["other_pair"], row["heads"]) == ("a", "b", 8)
    rho = 1 - 24 / 504
    assert row["spearman"] == pytest.approx(rho) and row["low"] <= rho <= row["high"]
    assert row["p"] < 0.01
    # Halves of a agree as rho, by Spearman and Brown 2 rho / (1 + rho); those of b wholly.
    assert row["ceiling"] == pytest.approx((2 * rho / (1 + rho)) ** 0.5)
    # The quarter is 2 of 8 heads: one of 28 sets of two is the same.
    assert (row["overlap"], row["overlap_ceiling"]) == (1, 1)
    assert row["overlap_p"] == pytest.approx(1 / 28)
    apart = table.ranks(importance({"a": [UP] * 3, "b": [DOWN] * 3})).iloc[0]
    assert (round(apart["spearman"], 9), apart["overlap"], apart["overlap_p"]) == (-1, 0, 1)
    assert spearmanr(UP, SWAPPED).statistic == pytest.approx(rho)


def test_the_table_shows_every_seed():
    frames = [importance({"a": [UP] * 3, "b": [other] * 3}, seed)
              for seed, other in ((1, UP), (2, DOWN))]  # fmt: skip
    (output,) = (o for c in chapters() for o in c.outputs
                 if o.name == "pair_ranks" and o.rows)  # fmt: skip
    shown = readable_table(output, table.ranks(pd.concat(frames)))
    assert shown["seed"].tolist() == ["1", "2"]
    assert [cell.split()[0] for cell in shown["correlation"]] == ["1.00", "-1.00"]


def test_a_head_matters_to_one_pair_only_by_both_halves_of_all_pairs():
    # Heads 6 and 7 lead for a. To b head 6 is the sixth of 8, in one half the third; head 7 last.
    last = [8.0, 7, 6, 5, 4, 2, 3, 1]
    half = [8.0, 7, 1, 5, 4, 2, 6, 3]
    found = table.own_heads(importance({"a": [UP] * 3, "b": [last, last, half]}))
    assert found[["pair", "head", "rank", "best_rank_elsewhere"]].to_numpy().tolist() == [
        ["a", 7, 1, 8],
        ["b", 0, 1, 8],
        ["b", 1, 2, 7],
    ]
    assert table.own_heads(importance({"a": [UP] * 3, "b": [UP] * 3})).empty


def test_a_quarter_of_11_heads_is_3_in_both_tables():
    halves = pd.DataFrame({half: range(11, 0, -1) for half in PLAIN})
    rows = [("enc_self", 0, h, pair, name, value if pair == "a" else 12 - value)
            for pair in "ab" for name in PLAIN for h, value in enumerate(halves[name])]  # fmt: skip
    names = ["kind", "layer", "head", "pair", "statistic", "value"]
    frame = pd.DataFrame(rows, columns=names).assign(run="r", seed=1)
    found = table.own_heads(frame)
    assert found["head"].tolist() == [0, 1, 2, 8, 9, 10]
    assert table.ranks(frame)["overlap_p"].tolist() == [1] and table._most(11) == 3


def test_scores_by_ranking_are_means_over_seeds_and_draws():
    rows = []
    for seed, less in ((1, 0.0), (2, 2.0)):
        scored = [("none", None, 30 - less, 0.0), ("a", None, 29 - less, -1.0)]
        scored += [
            ("b", None, 27 - less, -3.0),
            ("random", 1, 20, -10 + less),
            ("random", 2, 24, -6),
        ]
        rows += [(n, d, s, x, x - 1, x + 1, seed) for n, d, s, x in scored]
    frame = pd.DataFrame(rows, columns=[*SCORES, "seed"]).assign(pair="a", test_set="t", run="r")
    frame["share"] = frame["heads_masked"] = (frame["pruned_on"] != "none").astype(int)
    both = pd.concat([frame, frame.assign(pair="b")], ignore_index=True)
    found = table.transfer(both).query("pair == 'a'").set_index("pruned_on")
    assert found["ranking"].to_dict() == {
        "none": "none", "a": "own", "b": "other", "random": "random",
    }  # fmt: skip
    assert found["score"].to_dict() == {"none": 29, "a": 28, "b": 26, "random": 22}
    assert found.loc["b", ["delta", "delta_low", "delta_high"]].tolist() == [-3, -4, -2]
    assert found.loc["random", ["low", "high"]].tolist() == [20, 24]


def test_the_map_shows_every_two_pairs_both_ways():
    frame = pd.DataFrame({"run": "r", "pair": ["a", "a"], "other_pair": ["b", "b"]})
    found = table.both_ways(frame.assign(spearman=[0.5, 0.7]))
    assert found["pair"].tolist() == ["a", "a", "b", "b"]
    assert found["other_pair"].tolist() == ["a", "b"] * 2  # the same order on both sides
    assert found["spearman"].tolist() == pytest.approx([1, 0.6, 0.6, 1])
