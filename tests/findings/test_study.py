"""The page of the study, from small tables of kept runs; every number is worked out beside it."""

import pandas as pd
import pytest

from headcount.base.errors import UserError
from headcount.findings.report.study import write_study

LOCKED = ["run", "seed", "heads", "n", "held", "seeds", "seeds_locked", "locked_ever"]
LOCKED += ["locked_from", "locked_slope", "others_slope", "locked_slope_ratio"]
LOCKED += ["others_slope_ratio", "place_both", "place_expected", "place_p"]
LOCKED += ["held_both", "held_expected", "held_p"]
SLOPES = [2.0, 0.0, 0.96, 0.25]
HELD = "impt-6-held60"


def row(run, seed, held, ever, place, foretold):
    """Of a training, or without a seed over two."""
    seeds = [2, 2] if seed is None else [1, 1]
    measured = [25, *SLOPES] if ever else [None] * 5
    return [run, seed, 48, 6, held, *seeds, ever, *measured, *place, *foretold]


@pytest.fixture
def kept(tmp_path):
    none, empty = [None] * 3, [None] * 3
    rows = [
        row("baseline", 4, 0, 0, none, empty),
        row("impt-6", 4, 0, 8, [2, 4 / 3, 0.4], empty),
        row("impt-6", 5, 0, 0, none, empty),
        # Over seeds means of what is known: 4 heads, but of the layer 2, as of the one that locks.
        row("impt-6", None, 0, 4, [2, 4 / 3, 0.4], empty),
        row(HELD, 4, 60, 4, none, [1, 0.5, 0.4]),
        row(HELD, None, 60, 4, none, [1, 0.5, 0.04]),
    ]
    compared = [
        ("dev", "dev_loss", "baseline", None, 0.25, None, None, 2),
        ("dev", "dev_loss", "impt-6", None, 0.5, None, None, 1),
        ("dev", "dev_loss", "impt-6", "baseline", 0.25, 0.1, 0.4, 1),
        (None, "harmful_share", "impt-6", None, 0.875, None, None, 1),
        (None, "heads_harmful_share", "impt-6", None, 0.75, None, None, 1),
    ]
    columns = ["test_set", "statistic", "run", "reference", "value", "low", "high", "seeds"]
    for experiment, name, table in (
        ("collapse", "headmask_locked", pd.DataFrame(rows, columns=LOCKED)),
        ("headmask_variants", "headmask_variants", pd.DataFrame(compared, columns=columns)),
    ):
        (tmp_path / experiment / "tables").mkdir(parents=True)
        table.to_csv(tmp_path / experiment / "tables" / f"{name}.csv", index=False)
    return tmp_path


def test_the_page_has_what_the_tables_say(kept):
    write_study(kept, kept / "study.md")
    page = kept.joinpath("study.md").read_text()
    assert "`collapse`: 4 trainings on the generated corpus, 48 heads, seeds 4, 5;" in page
    assert "3 trainings, as long as" in page  # two of the baseline, one of impt-6
    # Two of the eight heads that were locked in; by chance 4/3 of eight, a sixth.
    where = "25 % (by chance 17 %; p 0.40)"
    assert f"| impt-6 | 2 of 2 | 4.0 | 25 | 0.96 / 0.25 | +2.00 / +0.00 | {where} |" in page
    assert "25 % are of it; more than chance gives (p < 0.05) in 0 of these 1 runs." in page
    assert "| 60 | 1.0 of 6 | 0.5 | 0.040 |" in page
    assert "more often than chance gives after holds of 60 updates" in page
    difference = "+0.250 (+0.100 to +0.400)"
    assert f"| impt-6 | 0.500 | {difference} | – | – | – | 0.88 / 0.75 |" in page
    assert "for no run; above it for `impt-6`." in page
    assert "Not finished yet: `lowdata`, `multi30k_short`." in page and "![" not in page


def test_a_hold_that_chance_explains_and_a_picture(kept):
    table = kept / "collapse/tables/headmask_locked.csv"
    table.write_text(table.read_text().replace("0.04\n", "0.4\n"))
    (kept / "collapse/headmask_locked_fig.png").write_bytes(b"png")
    write_study(kept, kept / "elsewhere" / "study.md")
    page = (kept / "elsewhere/study.md").read_text()
    assert "do not stay masked more often than chance gives" in page.replace("\n", " ")
    assert "](collapse/headmask_locked_fig.png)" in page
    assert (kept / "elsewhere/collapse/headmask_locked_fig.png").read_bytes() == b"png"


def test_tables_that_are_not_there(kept):
    (kept / "headmask_variants/tables/headmask_variants.csv").unlink()
    with pytest.raises(UserError, match="kept.py page headmask_variants"):
        write_study(kept, kept / "study.md")
