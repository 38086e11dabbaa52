"""Tables of pruned runs: scores beside controls, and other ways to choose."""

from math import nan
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from headcount.analysis.tables.voita import pruning as tables
from headcount.base.addresses import HeadGrid
from headcount.base.errors import UserError

PAIR = "synthetic.en-xx"
GRID = HeadGrid({"enc_self": (8,), "dec_self": (4,), "dec_enc": (4,)})
SETTINGS = {"model": SimpleNamespace(grid=GRID)}


def scores(runs: list[str], values: list[float]) -> pd.DataFrame:
    table = pd.DataFrame({"run": runs, "score": values})
    return table.assign(pair=PAIR, seed=1, test_set="test", signature="s")


def models(*rows: tuple) -> pd.DataFrame:
    """Return models of the scope `all` from their run, how, λ and start."""
    table = pd.DataFrame(rows, columns=["run", "method", "lambda", "start"])
    gates = table["run"].str.replace("ranked-", "").str.replace("scratch-", "")
    return table.assign(pair=PAIR, seed=1, scope="all", gates_run=gates, control="gates-l0")


@pytest.fixture
def texts(tmp_path: Path) -> tuple[list[Path], list[Path]]:
    """Return translations, of which `gates-l0` is perfect, and the reference."""
    lines = {"gates-l0": "a b c d e f", "gates-l1": "a b c d e x", "ranked-gates-l1": "a b c d y x"}
    lines["gates-l1-from-h2"] = lines["gates-l1"]
    paths = {run: tmp_path / PAIR / run / "seed1/translations/test.txt" for run in lines}
    reference = tmp_path / PAIR / "test.tgt"
    for run, path in [*paths.items(), ("gates-l0", reference)]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{lines[run]}\n" * 4)
    return list(paths.values()), [reference]


# Of 6, 5, 4 and 3 n-grams of a line, 5, 4, 3 and 2 are right; of the worse line 4, 3, 2 and 1.
GOOD = 100 * (5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25
WORSE = 100 * (4 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25
UNTUNED = ["pair", "run", "seed", "test_set", "gates_run", "contender", "lambda", "comparison"]


def sweep() -> pd.DataFrame:
    return models(
        ("gates-l0", "gates", 0.0, "baseline"),
        ("gates-l1", "gates", 1.0, "baseline"),
        ("gates-l1-from-h2", "gates", 1.0, "h2"),
        ("ranked-gates-l1", "ranked", 1.0, "baseline"),
    ).assign(heads_left=[16, 8, 7, 8])


def sweep_scores() -> pd.DataFrame:
    runs = [*sweep()["run"], "baseline", "h2"]
    return scores(runs, [100, GOOD, GOOD, WORSE, 99, 98])


def test_a_run_stands_beside_its_control_and_its_start(texts: tuple) -> None:
    table = tables.records(sweep(), sweep_scores(), *texts)
    assert table["delta"].tolist() == pytest.approx([0, GOOD - 100, GOOD - 100, WORSE - 100])
    assert table["start_score"].tolist() == [99, 99, 98, 99]
    assert set(table["control_score"]) == {100}
    with pytest.raises(UserError, match="bleu.json of gates-l0 and of gates-l0"):
        tables.records(sweep(), sweep_scores().query("run != 'gates-l0'"), *texts)


def test_ways_and_starts_are_compared_with_gates_on_the_baseline(texts):
    runs = tables.records(sweep(), sweep_scores(), *texts)
    untuned = pd.DataFrame([[PAIR, "baseline", 1, "test", "gates-l1", "drawn", 1.0, "untuned"]])
    untuned = untuned.set_axis(UNTUNED, axis=1).assign(delta=-5.0, reference_run="baseline")
    table = tables.comparison(runs, untuned, *texts)
    columns = ["comparison", "contender", "run", "reference_run"]
    assert table[columns].fillna("").to_numpy().tolist() == [
        ["tuned", "gates", "gates-l1", ""],
        ["tuned", "ranked", "ranked-gates-l1", "gates-l1"],
        ["untuned", "drawn", "baseline", "baseline"],
        ["start", "baseline", "gates-l1", ""],
        ["start", "h2", "gates-l1-from-h2", "gates-l1"],
    ]
    expected = [nan, WORSE - GOOD, -5, nan, 0]
    assert table["delta"].tolist() == pytest.approx(expected, nan_ok=True)
    assert table["control_delta"].iloc[1] == pytest.approx(WORSE - 100)
    runs = tables.records(sweep().iloc[:2], sweep_scores(), *texts)
    nothing = pd.DataFrame(columns=[*UNTUNED, "reference_run"])
    assert tables.comparison(runs, nothing, *texts).empty


def test_untuned_models_with_another_number_of_heads_are_refused() -> None:
    gates = sweep().assign(scope_heads=16, scope_left=8)
    masked = pd.DataFrame({"pair": [PAIR], "run": "baseline", "seed": 1, "order": "gates"})
    masked = masked.assign(matched_run="gates-l1", heads_masked=8)
    assert tables.untuned_models(gates, masked, SETTINGS)["heads_left"].tolist() == [8]
    with pytest.raises(UserError, match="as gates-l1 expected 8 heads left, found 7"):
        tables.untuned_models(gates, masked.assign(heads_masked=9), SETTINGS)


def test_few_heads_are_trained_further_and_from_scratch() -> None:
    chosen = models(
        ("gates-l0", "gates", 0.0, "baseline"),
        ("ranked-gates-l1", "ranked", 1.0, "baseline"),
        ("gates-none", "gates", 1.0, "random weights"),
        ("gates-enc", "gates", 1.0, "baseline"),
        ("gates-twin", "gates", 1.0, "baseline"),
        ("scratch-gates-twin", "scratch", 1.0, "baseline"),
    )
    chosen["scope"] = ["all", "all", "all", *["enc_self"] * 3]
    chosen = chosen.assign(updates=30, updates_before=[100, 100, 0, 100, 100, 100])
    curves = pd.DataFrame({"pair": [PAIR], "run": "baseline", "seed": 1, "step": 100})
    runs = [*chosen["run"], "baseline"]
    table = tables.few_heads(chosen, scores(runs, [9.0] * 7), curves, SETTINGS)
    columns = ["run", "training", "updates", "updates_before"]
    ours = table[table["source"] == "ours"]
    assert ours[columns].to_numpy().tolist() == [
        ["baseline", "none", 100, 0],
        ["gates-l0", "trained", 30, 100],
        ["gates-none", "gates from random weights", 30, 0],
        ["gates-twin", "trained", 30, 100],
        ["scratch-gates-twin", "scratch", 30, 0],
    ]
    assert ours[["enc_self", "dec_self", "heads_left"]].iloc[0].tolist() == [8, 4, 16]
    paper = table[(table["printed"] == "12/21/25") & (table["training"] == "scratch")].iloc[0]
    assert (paper["pair"], paper["score"], paper["heads_left"]) == ("wmt.en-ru", 28.95, 58)
