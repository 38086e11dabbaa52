"""Scores of runs and their differences, against numbers worked out by hand or another way."""

from math import atan, pi, sqrt

import numpy as np
import pandas as pd
import pytest

from headcount.analysis.scores import compare, t_tests, with_baseline
from headcount.base.errors import UserError
from headcount.scoring.bootstrap import compare_systems

PAIR = "synthetic.en-xx"
GOLD = ["a b c d e f"] * 4
# Of 6, 5, 4 and 3 n-grams in every line, 5, 4, 3 and 2 are in the reference.
WORSE = ["a b c d e x"] * 4
BLEU = 100 * (5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25


def translate(folder, run, lines):
    path = folder / "train" / PAIR / run / "seed1" / "translations" / "test.txt"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def scored(run, score, seed=1):
    row = {"test_set": "test", "metric": "bleu", "score": score, "signature": "s", "engine": "e"}
    return {"pair": PAIR, "run": run, "seed": seed, "scores": [row]}


@pytest.fixture
def references(tmp_path):
    path = tmp_path / "text" / PAIR / "test.tgt"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{line}\n" for line in GOLD))
    return [path]


def wanted(*rows):
    return pd.DataFrame(rows, columns=["run", "reference_run"]).assign(
        pair=PAIR, seed=1, test_set="test"
    )


def test_equal_lines_differ_alike_in_every_resample(tmp_path, references):
    texts = [translate(tmp_path, "baseline", GOLD), translate(tmp_path, "l0", WORSE)]
    rows = wanted(("l0", "baseline"), ("baseline", "l0"), ("l0", "l0")).set_axis([7, 7, 7])
    table = compare(rows, texts, references)
    assert table["run"].tolist() == ["l0", "baseline", "l0"]
    for column in ("delta", "delta_low", "delta_high"):
        assert table[column].to_numpy() == pytest.approx([BLEU - 100, 100 - BLEU, 0])
    # No resample is further away; a difference of 0 has p 1.
    assert table["p"].to_numpy() == pytest.approx([1 / 1001, 1 / 1001, 1])
    assert table["signature"].str.contains("bs:1000").all()
    with pytest.raises(UserError, match="l0, 1, test"):
        compare(rows, texts[:1], references)


def test_several_runs_have_the_resamples_of_one(tmp_path, references):
    draws = np.random.default_rng(3)
    lines = {run: [" ".join(draws.permuted(list("abcdef"))) for _ in GOLD] for run in "uvw"}
    texts = [translate(tmp_path, run, text) for run, text in lines.items()]
    table = compare(wanted(("v", "u"), ("w", "u"), ("w", "v")), texts, references)
    for row in table.itertuples():
        (alone,) = compare_systems(lines[row.reference_run], [lines[row.run]], GOLD, "xx")
        assert (row.delta, row.delta_low) == (alone.delta, alone.low)
        assert (row.delta_high, row.p) == (alone.high, alone.p_value)


def test_runs_beside_the_baseline_of_their_seed_and_test_set(tmp_path, references):
    scores = [scored("baseline", 100), scored("l0", BLEU), scored("l0", BLEU, seed=2)]
    scores[1]["scores"].append(scores[1]["scores"][0] | {"metric": "chrf", "score": 70})
    texts = [translate(tmp_path, "baseline", GOLD), translate(tmp_path, "l0", WORSE)]
    table = with_baseline(scores, texts, references)
    assert table["score"].tolist() == [100, BLEU, BLEU]
    assert table["delta"].isna().tolist() == [True, False, True]
    assert table["delta"][1] == pytest.approx(BLEU - 100)
    assert table["signature"].tolist() == ["s"] * 3
    assert table["test_signature"][1].startswith("nrefs:1|bs:1000")
    alone = with_baseline(scores[:1], [], references)
    assert alone["score"].tolist() == [100] and alone["delta"].isna().all()


def test_t_test_over_seeds():
    """Of 1 and 3, t = 2 with one degree of freedom: p = 1 − 2 ÷ π · atan 2."""
    table = pd.DataFrame(
        {"run": ["b", "b", "a"], "seed": [1, 2, 1], "score": [4.0, 8, 5], "delta": [1.0, 3, np.nan]}
    )
    two, one = t_tests(table, ["run"]).to_dict("records")
    assert (two["run"], two["score"], two["delta"], two["seeds"]) == ("b", 6, 2, 2)
    assert two["score_sd"] == pytest.approx(sqrt(8)) and two["delta_sd"] == pytest.approx(sqrt(2))
    assert (two["t_low"], two["t_high"]) == pytest.approx((2 - 12.7062, 2 + 12.7062), rel=1e-4)
    assert two["t_p"] == pytest.approx(1 - 2 / pi * atan(2))
    assert one["score"] == 5 and np.isnan([one["delta"], one["score_sd"], one["t_p"]]).all()
