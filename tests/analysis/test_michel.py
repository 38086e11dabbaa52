"""Effects of single heads, and what Michel et al. print of them."""

import numpy as np
import pandas as pd
import pytest

from headcount.analysis.published import michel
from headcount.analysis.tables.michel import heads as module

MODEL = {"pair": "a-b", "run": "baseline", "seed": 1, "metric": "bleu"}
COLUMNS = ["test_set", "order", "index", "kind", "layer", "head", "delta", "p"]
ROWS = [
    ("dev", "none", 0, None, np.nan, np.nan, 0.0, 1.0),
    ("dev", "single", 1, "enc_self", 0, 0, -1.0, 0.001),
    ("dev", "single", 2, "enc_self", 0, 1, 0.5, 0.02),
    ("dev", "all_but_one", 4, "dec_enc", 1, 0, -3.0, 0.2),
    ("dev", "all_but_one", 2, "enc_self", 0, 1, 2.0, 0.3),
    ("test", "single", 1, "enc_self", 0, 0, 0.3, 0.004),
    ("test", "single", 2, "enc_self", 0, 1, -0.2, 0.006),
    ("test", "all_but_one", 4, "dec_enc", 1, 0, -4.0, 0.001),
    ("test", "all_but_one", 2, "enc_self", 0, 1, 1.0, 0.001),
]
NONE = pd.DataFrame()


def ablation(rows=ROWS, **changes):
    scores = {"score": 30.0, "delta_low": -1.0, "delta_high": 1.0, "heads_masked": 7}
    return pd.DataFrame(rows, columns=COLUMNS).assign(**MODEL | scores | changes)


def test_p_is_corrected_for_the_heads_of_a_test_set():
    masked = module.masked_heads(ablation(), NONE)
    heads = module.single_heads(masked)
    ours = heads[heads["source"] == "ours"]
    assert ours["p_holm"].tolist() == [0.002, 0.02, 0.008, 0.008]
    assert ours["significant"].tolist() == [1, 0, 1, 1]
    assert len(heads) == 4 + 96 and "metric" not in heads
    assert module.heads_on_tests(heads)["test_set"].tolist() == ["test", "test"]
    assert set(module.single_heads(masked.assign(metric="accuracy"))["source"]) == {"ours"}
    assert len(module.masked_heads(ablation(), NONE)) == 8
    assert module.masked_heads(NONE, ablation())["layer"].tolist() == [0, 0, 1, 0, 0, 0, 1, 0]


def test_the_head_that_stays_is_shown_with_its_change_on_dev():
    layers = module.lone_heads(module.masked_heads(ablation(), NONE))
    ours = layers[layers["source"] == "ours"]
    assert ours["kind"].tolist() == ["enc_self", "dec_enc"]
    assert ours[["dev_delta", "delta"]].to_numpy().tolist() == [[2, 1], [-3, -4]]
    assert ours["heads"].tolist() == [8, 8]
    assert layers["heads"].tolist()[2:] == [16] * 18


def eight_heads():
    """Return effects of four encoder and three decoder heads on dev, t1 and t2."""
    deltas = {"dev": range(7), "t1": [0, 1, 2, 3, 6, 5, 4], "t2": [3, 2, 1, 0, 4, 5, 6]}
    kinds = ["enc_self"] * 4 + ["dec_self"] * 3
    rows = [
        (test, "single", place, kind, 0, place, float(delta), 1.0)
        for test, values in deltas.items()
        for place, (kind, delta) in enumerate(zip(kinds, values, strict=True))
    ]
    return module.masked_heads(ablation(rows), NONE)


def test_effects_are_compared_between_all_test_sets_with_dev_last():
    points = module.effects(eight_heads())
    tests = points[["test_set", "other_test_set"]].drop_duplicates().to_numpy().tolist()
    assert tests == [["t1", "t2"], ["t1", "dev"], ["t2", "dev"]]
    assert points["other_delta"].tolist()[:7] == [3, 2, 1, 0, 4, 5, 6]
    r = module.with_correlation(points)["r"]
    assert r[0] == pytest.approx(np.corrcoef([0, 1, 2, 3, 6, 5, 4], [3, 2, 1, 0, 4, 5, 6])[0, 1])
    masked = eight_heads()
    table = module.transfer(module.effects(masked), masked)
    ours = table[table["source"] == "ours"]
    assert ours["kind"].tolist() == ["all", "enc_self"] * 3
    assert ours["heads"].tolist() == [7, 4] * 3
    assert ours["spearman"].tolist()[1::2] == pytest.approx([-1, 1, -1])
    assert table["pearson"].tolist()[-1] == 0.56
    only_encoder = masked[masked["kind"] == "enc_self"].assign(metric="accuracy")
    table = module.transfer(module.effects(only_encoder), only_encoder)
    assert table["kind"].tolist() == ["all"] * 4 and table["pearson"].tolist()[-1] == 0.68


def test_printed_tables_agree_with_the_text_of_the_paper():
    """8 of 96 heads are significant, 4 of them gains; 9 of 18 layers need more than one head."""
    heads, layers = michel.single_heads(), michel.lone_heads()
    assert (len(heads), heads["significant"].sum()) == (96, 8)
    assert (heads["delta"][heads["significant"] == 1] > 0).sum() == 4
    assert layers.groupby("metric", sort=False)["significant"].sum().tolist() == [9, 0]
    assert michel.table("significant_table2")["value"].sum() == 5
    worst = layers.loc[layers["delta"].idxmin()]
    assert (worst["kind"], worst["layer"], worst["dev_delta"]) == ("dec_enc", 5, -13.56)
    curves = michel.curves()
    starts = curves[curves["percent"] == 0]
    assert len(starts) == 6 and not starts["delta"].any()
    assert michel.prunable()[["heads", "last_ok_heads"]].to_numpy().tolist() == [[144, 58]]
    epochs = michel.training().groupby("epoch")["kept"]
    assert epochs.first().eq(100).all() and epochs.last().eq(0).all() and len(epochs) == 16
