"""What the study says of foretold heads and of masks that begin late; numbers are worked out."""

import pandas as pd
import pytest
from test_study import LOCKED, cost, kept, locked_table, page_of, plant, row

from headcount.findings.headmask.foreseen import MOMENTS

__all__ = ["kept"]  # a fixture
NONE = [None] * 3


def areas(run, seed, moments=MOMENTS, **signs):
    return [
        {"run": run, "seed": seed, "moment": moment, "foretold_by": sign, "roc_area": value}
        for moment in moments
        for sign, value in signs.items()
    ]


@pytest.fixture
def foretold(kept):
    """Two runs that lock heads in with both seeds, and one that does with one of them."""
    others = [row(run, None, 0, 2, NONE, NONE) for run in ("impt-1", "impt-3")]
    table = pd.concat([locked_table(), pd.DataFrame(others, columns=LOCKED)])
    rows = areas("impt-6", 4, slope=0.2, first_decoder=0.8)
    rows += areas("impt-6", 5, slope=0.4, first_decoder=0.8)
    rows += areas("impt-1", 4, slope=0.4) + areas("impt-1", 5, slope=0.4)
    rows += areas("impt-3", 4, slope=1.0) + areas("impt-6-held60", 4, slope=1.0)
    rows += areas("impt-6", None, slope=1.0)  # over seeds, which the page takes of runs together
    found = pd.DataFrame(rows)
    late = found["moment"].eq("before_masked") & found["foretold_by"].eq("first_decoder")
    found.loc[late, "roc_area"] = 0.25
    plant(kept, "collapse", headmask_locked=table, headmask_foreseen=found)
    return kept


def test_areas_are_means_over_runs_and_intervals_over_seeds(foretold):
    page = page_of(foretold)
    # Of seed 4 (0.2 + 0.4) / 2, of seed 5 0.4: 0.35, standard error 0.05, t 12.7062.
    slope = "0.35 (-0.29 to 0.99)"
    assert "Mean over the 2 runs" in page
    assert f"| slope | {slope} | {slope} | {slope} |" in page
    assert "| in the decoder's first layer | 0.80 (0.80 to 0.80) | 0.80" in page
    assert "| importance | – | – | – |" in page
    assert (
        "That the decoder's first layer foretells locked heads: holds after the first interval, "
        "area 0.80 (0.80 to 0.80); does not hold among the heads masked most, 0.25 (0.25 to 0.25). "
        "That a slope above 0, harm, foretells locked heads: undecided after the first interval, "
        f"area {slope}; undecided among the heads masked most, {slope}." in page
    )


def test_nothing_is_foretold_without_the_table(kept):
    assert "Are they foretold" not in page_of(kept) and "trained first" not in page_of(kept)


def later_table(p):
    none = row("impt-6-after100", None, 0, 0, NONE, NONE)
    none[LOCKED.index("seeds_locked")] = 0
    held = "impt-6-held60-after100"
    rows = [none, row(held, None, 60, 4, NONE, [3, 0.5, p]), row(held, 4, 60, 4, NONE, NONE)]
    some = "impt-6-after200"
    rows += [row(some, None, 0, 5, [3, 0.8, 0.02], NONE)]
    rows += [row(some, 4, 0, 6, [4, 1.0, 0.01], NONE), row(some, 5, 0, 4, [2, 0.6, 0.2], NONE)]
    rows += [row("impt-6-after100", seed, 0, 0, NONE, NONE) for seed in (4, 5)]
    table = pd.DataFrame(rows, columns=LOCKED)
    alone = table["seed"].notna()
    table.loc[alone, "seeds"] = 1
    table.loc[alone, "seeds_locked"] = (table.loc[alone, "locked_ever"] > 0).astype(int)
    return table


def test_masks_that_begin_late(kept):
    plant(kept, "collapse_later", headmask_locked=later_table(0.04), cost=cost(60, 30))
    page = page_of(kept)
    assert "| impt-6-after100 | 0 of 2 | 0.0 | – | – | – | – |" in page
    held = "| 2 of 2 | 4.0 | 25 | +2.00 / +0.00 | – | 3.0 of 6, by chance 0.5; p 0.040 |"
    assert f"| impt-6-held60-after100 {held}" in page
    # Six of the ten heads of the run that locks some in.
    assert (
        "When masking begins late, 2 of 4 trainings lock heads in; 60 % of these heads are of the "
        "decoder's first self-attention. "
        "Heads that are held then stay more often than chance gives in 1 of 1 runs: "
        "`impt-6-held60-after100`." in page
    )
    assert "| 3.0, by chance 0.8; p 0.020 | – |" in page
    assert "| [collapse_later](collapse_later.md#the-runs) | 0 |" in page
    plant(kept, "collapse_later", headmask_locked=later_table(0.06))
    assert "chance gives in 0 of 1 runs.\n" in page_of(kept)
