"""Tables and figures with runs that keep exactly K heads; numbers are worked out beside them."""

import pytest
from chapters import gather_results, make_tables
from voita_files import MODEL, PRUNED, SUBSETS, pruned_runs

from headcount.base.settings.train import GatesSettings
from headcount.findings.voita_pruning.bleu_curves import method_points
from headcount.findings.voita_pruning.comparison import untuned
from headcount.findings.voita_pruning.records import records

SETTINGS = {"model": MODEL, "gates": GatesSettings()}


@pytest.fixture(scope="module")
def listed(tmp_path_factory):
    return pruned_runs(tmp_path_factory.mktemp("runs"), [*PRUNED, *SUBSETS]).listed


@pytest.fixture(scope="module")
def tables(listed):
    found = make_tables("voita_pruning", listed, SETTINGS)
    return {name.removeprefix("voita_"): table for name, table in found.items()}


def test_they_are_recorded_beside_the_control_without_a_price(tables):
    table = tables["pruning"]
    row = table.tidy.set_index(["run", "seed"]).loc[("subset-all-k4", 2)]
    # Gates 1 0 | 1 | 0 | 1 1; 5 of 200 lines wrong, none of the control.
    assert row[["how", "heads_left", "enc_self", "dec_self", "dec_enc"]].tolist() == [
        *("subset", 4, 2, 0, 2),
    ]
    assert row["delta"] == pytest.approx(-2.5) and row["polarised"] == ""
    shown = table.shown.set_index("run")
    assert (shown.loc["subset-all-k4", "λ"], shown.loc["gates-all-l0", "λ"]) == ("–", "0")
    assert shown.loc["subset-enc_self-k1", "heads left"] == "4"
    # Seeds lose 1 and 5 lines of 200: −0.5 and −2.5.
    assert shown.loc["subset-all-k4", "difference"].startswith("-1.50 ±")
    assert "Subsets: exactly K heads of the scope stay" in table.text


def test_the_sweeps_over_lambda_stay_as_they_are(tables, tmp_path):
    plain = make_tables("voita_pruning", pruned_runs(tmp_path).listed, SETTINGS)
    for name in ("falls", "table2", "comparison"):
        assert tables[name].tidy.equals(plain[f"voita_{name}"].tidy)
    assert "Subsets" not in plain["voita_pruning"].text


def test_each_k_is_a_point_of_its_own(listed):
    results = gather_results("voita_pruning", listed, SETTINGS)
    points = method_points(records(results), untuned(results))
    found = points[(points["contender"] == "subset") & (points["scope"] == "all")]
    assert found[["heads", "heads_left", "delta"]].values.tolist() == [
        [6, 4, pytest.approx(-1.5)],
        [6, 2, pytest.approx(-10)],
    ]
    assert set(found["panel"]) == {"tuned"} and set(found["seeds"]) == {2}
