"""The table of headline results, from files of a few rows."""

import json
from pathlib import Path

import pytest

from headcount.analysis.claims.claims import Evidence, ledger
from headcount.analysis.claims.phenomena import phenomena, phenomena_table
from headcount.analysis.claims.table import metric_of
from headcount.analysis.inputs import files_in

PLACE = "e/heads/a.x-y/baseline/seed1"
POSITIONS = """kind,layer,head,statistic,value,offset,hits,trials,counted
enc_self,0,0,share,0.2,-1,40,200,1
enc_self,0,1,share,0.98,1,196,200,1
enc_self,0,1,share_content,0.99,1,198,200,0
"""


def make_table(tmp_path, baseline):
    scores = {
        "baseline-d0": (30, 31, 32),
        "baseline": baseline,
        "random-6-d0": (31, 32, 33.5),
    }
    rows = ["pair,run,seed,test_set,metric,score"]
    for run, by_seed in scores.items():
        rows += [f"a.x-y,{run},{seed},t,bleu,{score}" for seed, score in enumerate(by_seed, 1)]
    facts = {"sentences": 100, "rare_sentences": 90, "copy_hits": 45, "copy_trials": 100}
    files = {"e/tables/bleu.csv": "\n".join(rows), f"{PLACE}/roles.json": json.dumps(facts)}
    for run, by_seed in scores.items():
        given = {"method": run.partition("-")[0]} | ({} if run == "baseline" else {"dropout": 0.0})
        given |= {"heads": 6} if "random" in run else {}
        for seed, _ in enumerate(by_seed, 1):
            files[f"e/train/a.x-y/{run}/seed{seed}/run.json"] = json.dumps({"run": run, **given})
    for name, text in (files | {f"{PLACE}/positions.csv": POSITIONS}).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return phenomena_table(Evidence(files_in("outputs", Path(tmp_path)))).set_index("phenomenon")


def test_rows_of_what_is_measured(tmp_path):
    table = make_table(tmp_path, baseline=(32, 33, 34.5))
    names = [phenomena()[name].phenomenon for name in ("masks", "dropout", "position", "copies")]
    assert table.index.tolist() == names
    masks, dropout, position, copies = (table.loc[name] for name in names)
    # Both are trained without dropout: gains of 1, 1 and 1.5.
    assert (masks["ours"], masks["holds"]) == (pytest.approx(3.5 / 3), "holds")
    # Gains of 2, 2 and 2.5 by seed: mean 2.17, t interval 2.17 ± 4.30 · 0.29 / √3.
    assert dropout["ours"] == pytest.approx(13 / 6)
    assert dropout["high"] - dropout["ours"] == pytest.approx(4.302653 / 6, rel=1e-5)
    assert dropout["holds"] == "holds"
    # One offset is enough. Wilson's interval of 98 in 100 sentences begins at 0.930.
    assert (position["ours"], position["holds"]) == (0.98, "holds")
    assert position["low"] == pytest.approx(0.9300, abs=1e-4)
    assert (copies["ours"], copies["holds"]) == (0.45, "undecided")


def test_one_training_has_no_interval_and_no_verdict(tmp_path):
    table = make_table(tmp_path, baseline=(32,))
    row = table.loc[phenomena()["dropout"].phenomenon]
    assert (row["ours"], row["holds"], row["limit"]) == (2, "undecided", "above 0")
    assert row[["low", "high"]].isna().all()


@pytest.mark.parametrize("name", phenomena())
def test_every_phenomenon_has_a_number_and_a_limit(name):
    claim = phenomena()[name].as_claim()
    assert set(metric_of(claim)[2]) <= set(ledger().evidence)
    assert claim.test.above is not None or claim.test.below is not None
