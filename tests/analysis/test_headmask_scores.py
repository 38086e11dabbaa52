"""Tables 1 to 4 of the HeadMask paper, from frames of a few rows."""

import json

import numpy as np
import pandas as pd
import pytest

from headcount.analysis.published import headmask
from headcount.analysis.tables.headmask.scores import data_sets, scores

COLUMNS = ["pair", "run", "seed", "test_set", "score", "delta", "delta_low", "delta_high", "p"]
NONE = (np.nan,) * 4
ROWS = [
    ("our.ro-en", "baseline", 1, "newstest2016", 20, *NONE),
    ("our.ro-en", "baseline", 2, "newstest2016", 24, *NONE),
    ("our.ro-en", "impt-18", 1, "newstest2016", 21, 1, 0.5, 2, 0.01),
    ("our.ro-en", "impt-18", 2, "newstest2016", 27, 3, 2, 4, 0.02),
    ("our.en-de", "baseline", 1, "test", 30, *NONE),
]
TWO_SEEDS = pd.DataFrame(ROWS, columns=COLUMNS).assign(signature="own", test_signature="paired")


def test_statistics_of_seeds_then_over_seeds_then_of_the_paper():
    table = scores(TWO_SEEDS, 3)
    assert set(table.loc[table["source"] == "ours", "pair"]) == {"our.ro-en"}
    run = table[(table["run"] == "impt-18") & (table["source"] == "ours")]
    one, means = run[run["seed"] == 1], run[run["seed"].isna()]
    assert one["value"].tolist() == [21, 1, 0.5, 2, 0.01]
    assert one["signature"].tolist() == ["own"] * 2 + ["paired"] * 3
    values = means.set_index("statistic")["value"]
    assert (values["bleu_mean"], values["delta_mean"]) == (24, 2)
    assert values["bleu_sd"] == pytest.approx(18**0.5)
    assert values["delta_low"] == pytest.approx(2 - 12.7062, rel=1e-4) and "p_t" in values


def test_scores_of_the_same_task_follow_ours():
    table = scores(TWO_SEEDS, 3)
    first = table[: (table["test_set"] == "newstest2016").sum()]
    printed = first[first["source"] == "paper"].set_index(["run", "statistic"])["value"]
    assert set(first["pair"]) == {"our.ro-en", "wmt16.ro-en"}
    assert printed["impt-18", "bleu"] == 32.95 and printed["impt-18", "delta"] == 0.78
    assert ("baseline", "delta") not in printed
    # A second corpus of the same languages stays together, after the paper's scores.
    both = pd.concat([TWO_SEEDS, TWO_SEEDS[:1].assign(pair="other.ro-en")])
    pairs = scores(both, 3)["pair"]
    assert pairs[pairs != pairs.shift()].tolist()[:3] == ["our.ro-en", "wmt16.ro-en", "other.ro-en"]
    assert set(table.loc[table["source"] == "paper", "signature"]) == {headmask.PAPER.metric}


@pytest.mark.parametrize(("number", "ours"), [(2, "our.ro-en"), (4, "our.en-de")])
def test_pairs_of_a_table(number, ours):
    table = scores(TWO_SEEDS, number)
    assert set(table.loc[table["source"] == "ours", "pair"]) == {ours}
    assert set(scores(TWO_SEEDS[:4], 4)["source"]) == {"paper"}


def test_data_sets(tmp_path):
    paths = [tmp_path / "our.ro-en" / f"{split}.json" for split in ("train", "dev", "new")]
    paths[0].parent.mkdir()
    for kept, path in zip((90, 8, 7), paths, strict=True):
        path.write_text(json.dumps({"pairs_kept": kept}))
    table = data_sets(paths)
    ours = table[table["source"] == "ours"]
    assert ours["role"].tolist() == ["train", "dev", "test"]
    assert ours["sentences"].tolist() == [90, 8, 7]
    paper = table[table["pair"] == "nist.zh-en"]
    assert paper["split"].tolist() == ["train", "MT03", "MT04", "MT05", "MT06"]
    assert paper["sentences"].tolist()[0] == 1340000 and paper["sentences"][1:].isna().all()
