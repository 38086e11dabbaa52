"""Heads masked by the rankings of several pairs: sets by hand, and scores by other translations."""

import csv

import numpy as np
import pytest
from masked_run import DECODE_FLAGS, MODEL, folder_flags, masked_bleu, masked_inputs
from script_runner import run_script

from headcount.ablation.pair_transfer import COLUMNS, transfer_points
from headcount.base.head_values import write_head_values
from headcount.base.settings.data import TransferSettings

VALUES = {"c.a-x": [1, 8, 2, 7, 3, 6, 4, 5], "c.b-x": [80, 10, 70, 20, 60, 30, 50, 40]}
# Sums are 36 and 360. Means over 36: 9 9 9 9 9 9 9 9, so the last heads are masked first.


def test_masked_heads_by_hand():
    importance = {pair: np.array(values, float) for pair, values in VALUES.items()}
    points = transfer_points(importance, TransferSettings(shares=[0.25, 0.5], draws=2), 5)
    found = {point.cells: point.heads for point in points}
    assert len(found) == len(points) == 1 + 2 * (2 + 1 + 2) and found["none", 0, ""] == ()
    assert found["c.a-x", 0.25, ""] == (0, 2) and found["c.a-x", 0.5, ""] == (0, 2, 4, 6)
    assert found["c.b-x", 0.25, ""] == (1, 3) and found["c.b-x", 0.5, ""] == (1, 3, 5, 7)
    assert found["mean", 0.25, ""] == (6, 7)
    for draw in (1, 2):
        few, many = (found["random", share, draw] for share in (0.25, 0.5))
        assert len(few) == 2 and len(many) == 4 and {*few} < {*many}


@pytest.mark.slow  # steps from files to files
def test_every_row_is_a_translation_with_these_heads_masked(tmp_path):
    inputs = masked_inputs(tmp_path / "in")
    for pair, values in VALUES.items():
        write_head_values(tmp_path / f"{pair}.csv", MODEL.grid, {"importance": values})
    out = tmp_path / "pair_transfer.csv"
    flags = [*folder_flags(inputs), "--seed", 5, "--tests", "other", "--out", out, *DECODE_FLAGS]
    flags += ["--pairs", *VALUES, "--importance", *(tmp_path / f"{pair}.csv" for pair in VALUES)]
    assert run_script("pair_transfer", [*flags, "--shares", "[0.25]", "--draws", 1]) == 0
    rows = list(csv.DictReader(out.open()))
    assert tuple(rows[0]) == COLUMNS
    assert [row["pruned_on"] for row in rows] == ["none", *VALUES, "mean", "random"]
    assert rows[1]["heads"] == "enc_self.0.0 enc_self.1.0"
    for row in rows:
        assert float(row["bleu"]) == pytest.approx(masked_bleu(inputs, "other", row["heads"]))
    assert len({row["bleu"] for row in rows}) > 2
