"""Ten claims across the papers computed a second time, from the files, with pandas and scipy.stats.

Nothing of findings/claims is used for it; each function returns the statistic, and what else of its
interval and p it computes.
"""

import json
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from planted_claims import PLANTED
from planted_files import write_results
from scipy import stats

from headcount.findings.claims.decisions import decide
from headcount.findings.claims.evidence import Evidence, result_files
from headcount.findings.claims.ledger import claims


def read(folder: Path, name: str, run: str = "baseline") -> pd.DataFrame:
    """Our rows of the one table or figure of this name, of one run."""
    table = pd.read_csv(folder / name, keep_default_na=False)
    ours = table[(table["source"] == "ours")] if "source" in table else table
    ours = ours[ours["run"] == run] if run else ours
    for column in ours:
        if column != "function":
            numbers = pd.to_numeric(ours[column], errors="coerce")
            ours = ours.assign(**{column: numbers}) if numbers.notna().all() else ours
    return ours


def run_files(folder: Path, name: str) -> list[Path]:
    return sorted(folder.glob(name))


def area_between_orders(folder: Path) -> dict:
    """HM-03: trapezoids by numpy of both whole curves."""
    (file,) = run_files(folder, "masking/*/baseline/seed1/headmask.csv")
    rows = pd.read_csv(file).query("ranking == 'own'")
    found = []
    for order in ("ascending", "descending"):
        curve = rows[rows["order"] == order].sort_values("heads_masked")
        share = curve["heads_masked"] / curve["heads_masked"].max()
        found.append(np.trapezoid(curve["bleu"], share))
    return {"value": found[0] - found[1]}


def random_to_important(folder: Path) -> dict:
    """HM-06: t-test by scipy of the differences."""
    rows = pd.concat(
        pd.read_csv(file, keep_default_na=False)
        for file in run_files(folder, "tables/headmask_table[234].csv")
    ).drop_duplicates(["pair", "run", "seed", "test_set", "statistic"])
    rows = rows[(rows["statistic"] == "delta") & (rows["source"] == "ours")]
    wide = rows.assign(method=rows["run"].str.split("-").str[0]).pivot(
        index=["pair", "seed"], columns="method", values="value"
    )
    gaps = wide["random"].astype(float) - wide["impt"].astype(float)
    if len(gaps) < 3:
        return {"value": gaps.mean()}
    test = stats.ttest_1samp(gaps, 0)
    low, high = test.confidence_interval()
    return {"value": gaps.mean(), "low": low, "high": high, "p": test.pvalue}


def significant_share(folder: Path) -> dict:
    """MI-01: significant heads over all."""
    rows = read(folder, "tables/michel_ablation.csv")
    rows = rows[rows["test_set"] == "test"]
    return {"value": float((rows["p"].astype(float) < 0.01).mean())}


def last_cross_layer(folder: Path) -> dict:
    """MI-05: the row itself."""
    rows = read(folder, "tables/michel_all_but_one.csv")
    last = rows[rows["kind"] == "dec_enc"].sort_values("layer").iloc[-1]
    return {"value": last["delta"], "low": last["delta_low"], "high": last["delta_high"]}


def parameters_in_heads(folder: Path) -> dict:
    """MI-15: a straight line through parameters by heads left, by scipy."""
    rows = read(folder, "figures/michel_speed.csv")
    line = stats.linregress(rows["heads_left"].astype(float), rows["parameters"].astype(float))
    return {"value": 1 - line.intercept / rows["parameters"].astype(float).max()}


def first_over_second(folder: Path) -> dict:
    """VO-11: sorted relevances of layer 0, mean over seeds."""
    rows = read(folder, "tables/voita_roles.csv").query("layer == 0")
    ratios = []
    for _, model in rows.groupby("seed"):
        first, second = sorted(model["relevance"], reverse=True)[:2]
        ratios.append(first / second)
    return {"value": sum(ratios) / len(ratios)}


def survival_by_function(folder: Path) -> dict:
    """VO-14: every arrangement of the labels within layers; so few heads only."""
    rows = read(folder, "tables/voita_roles.csv").reset_index()
    marked = rows["function"].astype(str) != ""
    layers = [rows.index[rows["layer"] == layer] for layer in rows["layer"].unique()]
    choices = [combinations(places, int(marked[places].sum())) for places in layers]
    values = rows["survival"].to_numpy(float)

    def difference(chosen: list) -> float:
        return values[chosen].mean() - np.delete(values, chosen).mean()

    arranged = np.array([difference(sum(map(list, each), [])) for each in product(*choices)])
    observed = difference(list(rows.index[marked]))
    apart = observed - arranged.mean()
    extreme = abs(arranged - arranged.mean()) >= abs(apart) - 1e-9
    return {"value": apart, "p": extreme.mean()}


def penalty_and_heads(folder: Path) -> dict:
    """VO-23: Spearman's correlation by scipy, the mean over scopes."""
    rows = read(folder, "tables/voita_pruning.csv", "")
    rows = rows[(rows["how"] == "gates") & (rows["start"] == "baseline")]
    found = [
        stats.spearmanr(scope["lambda"].astype(float), scope["scope_left"].astype(float)).statistic
        for _, scope in rows.groupby("scope")
    ]
    return {"value": sum(found) / len(found)}


def relevant_overlap(folder: Path) -> dict:
    """VB-03: the hypergeometric tail by scipy."""
    rows = read(folder, "tables/voita_roles.csv").reset_index()
    known = set(rows.index[rows["function"].astype(str) != ""])
    top = [set(rows.sort_values(name)[-len(known) :].index) for name in ("relevance", "confidence")]
    shared = [len(top[0] & other) for other in (known, top[1])]
    tails = [stats.hypergeom.sf(each - 1, len(rows), len(known), len(known)) for each in shared]
    return {"value": min(shared) / len(known), "p": max(tails)}


def least_agreement(folder: Path) -> dict:
    """X-01: the smallest of the correlations of five measures."""
    rows = read(folder, "tables/voita_agreement.csv")
    names = {"importance", "relevance", "confidence", "survival", "bleu_lost"}
    inside = rows["first"].isin(names) & rows["second"].isin(names)
    kept = rows[inside & (rows["kind"] == "enc_self") & (rows["scope"] == "within layers")]
    worst = kept.astype({"spearman": float}).sort_values("spearman").iloc[0]
    return {"value": worst["spearman"], "low": worst["low"], "high": worst["high"]}


AGAIN = {
    "HM-03": area_between_orders,
    "HM-06": random_to_important,
    "MI-01": significant_share,
    "MI-05": last_cross_layer,
    "MI-15": parameters_in_heads,
    "VO-11": first_over_second,
    "VO-14": survival_by_function,
    "VO-23": penalty_and_heads,
    "VB-03": relevant_overlap,
    "X-01": least_agreement,
}


@pytest.mark.parametrize("name", AGAIN)
def test_a_second_computation_agrees(tmp_path, name):
    for place, planted in enumerate(PLANTED[name]):
        folder = write_results(tmp_path / str(place) / "planted", planted())
        found, _ = decide(claims()[name], Evidence(result_files(folder)))
        again = AGAIN[name](folder)
        near = 0.005 if name == "VO-14" else 1e-6  # its p is of 9,999 shufflings
        assert {key: getattr(found, key) for key in again} == pytest.approx(again, abs=near)


def test_masks_are_counted_as_scipy_counts_them(tmp_path):
    """HM-15: two heads of 16 masked in 60 % of 1,000 updates, the others in 0.8 / 14 each.

    Least trained: 400 of a mean of 875. Chi-square over binomial variances, one degree fewer.
    """
    folder = write_results(tmp_path / "planted", PLANTED["HM-15"][1]())
    found, _ = decide(claims()["HM-15"], Evidence(result_files(folder)))
    assert found.value == pytest.approx(400 / 875)
    counts = np.array([600, 600, *[800 / 14] * 14])
    variance = 1000 * (1 / 8) * (7 / 8) * 16 / 15
    p = stats.chi2.sf(((counts - 125) ** 2).sum() / variance, 15)
    assert found.reason == f"masks are uniform over heads with p = {p:.2g}"
    assert json.dumps(found.p) == "NaN"
