"""Figures and tables of runs with unlike numbers of seeds, or one of which masks no head."""

import dropout_files
import pandas as pd
from chapters import gather_results
from dropout_files import PAIR, RUNS, models_by_dropout
from headmask_files import MODEL

from headcount.base.settings.importance import ImportanceSettings
from headcount.findings.headmask import regularisation, regularisation_figure
from headcount.findings.setting import warn_of_unlike_seeds

SETTINGS = {"model": MODEL.with_dropout(0.0), "importance": ImportanceSettings()}


def test_a_run_that_masks_no_head_is_one_without_masks(tmp_path, monkeypatch):
    """Its dev loss is the lowest: it is tuned dropout, and masks are chosen among the others."""
    none = {"random-0-d0.2": (0.2, (1.5, 1.6), (34.0, 37.0))}
    monkeypatch.setattr(dropout_files, "RUNS", RUNS | none)
    results = gather_results("headmask", models_by_dropout(tmp_path), SETTINGS)
    table = regularisation.table(results).tidy
    chosen = table.loc[table["chosen"] == "yes", "run"].unique().tolist()
    assert chosen == ["random-3-d0.1", "random-0-d0.2"]
    assert set(table.loc[table["reference"] == "tuned dropout", "against"]) == {"random-0-d0.2"}
    points = regularisation_figure.figure(results).data.set_index("run")
    assert (points.loc["random-0-d0.2", "series"], points.loc["random-2", "series"]) == (
        "",
        "random",
    )


def test_means_over_fewer_seeds_than_others_are_named():
    columns = ["pair", "run", "seeds"]
    rows = [(PAIR, "baseline", 3), (PAIR, "random-2", 1), (PAIR, "random-3", 2), ("paper", "l", "")]
    points = pd.DataFrame([*rows, ("c.en-de", "baseline", 1)], columns=columns)
    assert warn_of_unlike_seeds(points) == (
        f"{PAIR}: means over fewer seeds than 3: random-2 (1), random-3 (2). How they lie beside "
        "others may be due to their seeds; differences, where there are any, are of the same "
        "seeds.",
    )
    assert warn_of_unlike_seeds(points[points["run"] == "baseline"]) == ()
