"""Scores by heads per layer, mean scores, curves and warnings, from frames of a few rows."""

import numpy as np
import pandas as pd
import pytest

from headcount.analysis.tables.general import scores as module

PAIR = "synthetic.en-xx"


NONE = (np.nan,) * 5
ONE = [("baseline", 1, 20.0, *NONE), ("baseline-h2", 1, 18.0, -2, -3, -1.5, 0.01, "paired")]
TWO = [*ONE, ("baseline", 2, 24.0, *NONE), ("baseline-h2", 2, 24.0, 0, -1, 1, 1, "paired")]


def by_heads(rows, dropout=0.1):
    columns = ["run", "seed", "score", "delta", "delta_low", "delta_high", "p", "test_signature"]
    comparison = pd.DataFrame(rows, columns=columns).assign(pair=PAIR, test_set="test")
    models, curves = [], []
    for (run, seed), heads in zip(comparison[["run", "seed"]].to_numpy(), [4, 2] * 2, strict=False):
        sizes = {"preset": "tiny", "d_model": 24, "heads": heads}
        sizes["dropout"] = 0.1 if run == "baseline" else dropout
        models.append({"pair": PAIR, "run": run, "seed": seed, "model": sizes, "parameters": 99})
        curves += [(PAIR, run, seed, speed) for speed in (300.0, 1200 * seed, 600 * seed)]
    curves = pd.DataFrame(curves, columns=["pair", "run", "seed", "tokens_per_s"])
    return module.heads_per_layer(models, curves, comparison.assign(signature="own"))


def test_models_by_heads_fewest_first():
    table = by_heads(ONE)
    assert table["run"].tolist() == ["baseline-h2", "baseline"]
    assert table["heads_per_layer"].tolist() == [2, 4] and table["head_width"].tolist() == [12, 6]
    assert set(table["parameters"]) == {99} and set(table["tokens_per_s"]) == {600}
    assert table["signature"].tolist() == ["paired", "own"]
    assert table["over"].tolist()[0] == "test sentences" and pd.isna(table["over"][1])
    # A model of another dropout differs in more than its heads.
    assert set(by_heads(ONE, dropout=0.3)["run"]) == {"baseline"}


def test_over_two_seeds_a_row_of_means_with_a_t_test_follows():
    """Of −2 and 0, t = −1 with one degree of freedom: p = 0.5."""
    table = by_heads(TWO)
    assert table["run"].tolist() == ["baseline-h2"] * 3 + ["baseline"] * 3
    row, base = table.loc[2], table.loc[5]
    assert np.isnan(row["seed"]) and row["over"] == "seeds" and row["heads_per_layer"] == 2
    assert (row["score"], row["delta"], row["tokens_per_s"]) == (21, -1, 900)
    assert row["p"] == pytest.approx(0.5)
    assert row["delta_low"] == pytest.approx(-1 - 12.7062, rel=1e-4)
    assert base["score"] == 22 and base[["delta", "p"]].isna().all()


def test_mean_scores_are_nested():
    columns = ["test_set", "metric", "score", "engine"]
    rows = [("x", "bleu", 10, "e"), ("x", "chrf", 40.126, "e"), ("x", "bleu", 11, "e")]
    scores = [dict(zip(columns, row, strict=True)) for row in rows]
    runs = [{"pair": PAIR, "run": "baseline", "seed": 1, "scores": scores}]
    columns = ["pair", "run", "seed", "test_set", "order", "score", "metric"]
    whole = ("nli", "bert", 1, "dev", "none", 83.337, "accuracy")
    masked = ("nli", "bert", 1, "dev", "single", 50.0, "accuracy")
    classifiers = pd.DataFrame([whole, masked], columns=columns)
    means = module.mean_scores(module.all_scores(runs, [], [], []), classifiers)
    assert means[PAIR] == {"baseline": {"x": {"bleu": 10.5, "chrf": 40.13}}}
    assert means["nli"] == {"bert": {"dev": {"accuracy": 83.34}}}
    assert module.mean_scores(module.all_scores([], [], [], []), classifiers[:0]) == {}
    columns = ["run", "metric", "sentences", "source_truncated", "hit_max_length"]
    rows = [("a", "bleu", 200, 2, 0), ("b", "bleu", 200, 0, 1), ("b", "bleu", 50, 0, 2)]
    table = pd.DataFrame([*rows, ("a", "chrf", 200, 99, 0)], columns=columns)
    (warning,) = module.cut_off(table.assign(pair=PAIR))
    assert warning.startswith("b of") and "4.0%" in warning


def test_a_training_that_pairs_share_is_drawn_once():
    rows = [("a", "x", 1, 1.5), ("b", "x", 1, 1.5), ("a", "y", 1, 2.0), ("b", "y", 1, 2.5)]
    curves = pd.DataFrame(rows, columns=["pair", "run", "seed", "seconds"])
    found = module.training_curves(curves)[["pair", "run", "seconds"]].to_numpy().tolist()
    assert found == [["all pairs", "x", 1.5], ["a", "y", 2.0], ["b", "y", 2.5]]


def test_curves_are_means_while_all_seeds_train():
    """Seed 2 ends before the third validation. At the second, losses 2 and 4 have the mean 3."""
    columns = ["seed", "step", "dev_loss", "train_loss", "seconds"]
    rows = [(1, 10, 5, 6, 60), (1, 20, 2, 3, 120), (1, 30, 1, 2, 180)]
    rows += [(2, 10, 7, 8, 120), (2, 20, 4, 5, 240)]
    frame = pd.DataFrame(rows, columns=columns).assign(pair=PAIR, run="baseline")
    curves = module.losses(frame).groupby(["loss", "time"])
    points = {key: list(zip(rows["at"], rows["mean"], strict=True)) for key, rows in curves}
    assert points["dev_loss", "updates"] == [(10, 6), (20, 3)]
    assert points["dev_loss", "minutes of training"] == [(1.5, 6), (3, 3)]
    assert points["train_loss", "updates"] == [(10, 7), (20, 4)]
