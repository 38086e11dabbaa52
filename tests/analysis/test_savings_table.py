"""The table of savings, against numbers worked out by hand."""

from types import SimpleNamespace

import pandas as pd
import pytest

from headcount.analysis.tables.voita import savings as table

FORMATS = [("headcount", "float32"), ("ctranslate2", "float32"), ("ctranslate2", "int8")]
RUNS = {name: SimpleNamespace(scope=scope) for name, scope in (
    ("few", "all"), ("fewer", "all"), ("thin", "ffn"), ("both", "heads_ffn"), ("every", "units"),
)}  # fmt: skip
FAST = {"baseline": 1.0, "few": 1.25, "fewer": 2.0, "thin": 4.0, "both": 2.5, "every": 5.0}
LOST = {"baseline": 0.0, "few": -0.1, "fewer": -0.4, "thin": -3.0, "both": -0.1, "every": -0.5}


def measured(seed: int = 1, slower: float = 1.0) -> pd.DataFrame:
    """Measurements of one seed: the whole model takes 8 s, 1 s in batches, int8 half as long."""
    rows = [
        {
            "model": model, "program": program, "compute_type": kind, "batch_size": size,
            "repeat": repeat, "seconds": slower * 8 / fast / size / (1 + (kind == "int8")),
            "delta": LOST[model], "delta_low": LOST[model] - 0.1 * seed,
        }
        for model, fast in FAST.items()
        for program, kind in FORMATS
        for size in (1, 4, 8)
        for repeat in (1, 2)
    ]  # fmt: skip
    rest = {"delta_high": 1.0, "score": 30.0, "chrf": 50.0, "sentences": 4, "parameters": 7}
    rest |= {"multiply_adds": 5, "weight_bytes": 4, "memory_bytes": 3, "pair": "p", "test_set": "t"}
    return pd.DataFrame(rows).assign(run="savings", seed=seed, **rest)


def test_a_speed_up_compares_with_the_whole_model_of_the_same_round():
    rows = pd.concat([measured(), measured(seed=2, slower=3)])
    late = (rows["seed"] == 2) & (rows["model"] == "few") & (rows["repeat"] == 2)
    rows.loc[late, "seconds"] *= 2.5
    rows.loc[late, "sentences"] *= 2  # a sentence takes as long as in the whole model
    found = table.points(rows, RUNS).set_index("run").query("compute_type == 'float32'")
    assert set(found.index) == {"baseline", "few", "fewer", "thin", "both"}  # units only with int8
    few = found.loc["few"]
    for timing in ("ours_single", "ours_large", "ct2_single", "ct2_large"):
        assert few[timing] == pytest.approx(1.25)
        assert few[[f"{timing}_low", f"{timing}_high"]].tolist() == pytest.approx([1, 1.25])
        assert found.loc["thin", timing] == pytest.approx(4)
    assert found.loc["baseline", "ct2_large_ms"] == pytest.approx(500)  # of 250 and 750
    assert few[["delta", "delta_low", "seeds"]].tolist() == pytest.approx([-0.1, -0.25, 2])


def test_int8_is_compared_with_float32_and_our_search_has_none():
    found = table.points(measured(), RUNS).query("compute_type == 'int8'").set_index("run")
    assert found["way"].to_dict() == {
        "baseline": "int8",
        "both": "everything",
        "every": "everything",
    }
    assert found["ct2_large"].to_dict() == pytest.approx({"baseline": 2, "both": 5, "every": 10})
    assert found["ours_large"].isna().all()


def test_every_way_has_its_fastest_model_that_loses_no_more():
    points = table.points(measured(), RUNS)
    chosen = table.savings(points, {"savings": SimpleNamespace(losses=[0.2, 0.55, 1.0])})
    found = chosen.assign(run=chosen["run"].fillna("")).groupby("way", sort=False)["run"].agg(list)
    assert found.to_dict() == {
        "whole model": ["baseline"],
        "heads": ["few", "fewer", "fewer"],
        "feed-forward units": ["", "", ""],
        "heads and feed-forward units": ["both"] * 3,
        "int8": ["baseline"] * 3,
        "everything": ["both", "both", "every"],
    }
    empty = chosen[chosen["way"] == "feed-forward units"]
    assert empty["ct2_large"].isna().all() and empty["loss"].tolist() == [0.2, 0.55, 1.0]
