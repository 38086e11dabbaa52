"""The study's point on little text, from a small table of kept runs."""

import pandas as pd
import pytest
from test_study import cost, kept, page_of, plant

from headcount.findings.report.study.choosing import _dearer_and_worse

__all__ = ["kept"]  # a fixture

REGULARISED = ["pair", "test_set", "statistic", "run", "dropout", "share", "chosen"]
REGULARISED += ["reference", "against", "value", "low", "high", "seeds"]
SMALL, LARGE = "multi30k_3k.en-de", "multi30k_10k.en-de"


def contest(pair, alike, tuned):
    """BLEU of the masks that were chosen, and its differences: value, low and high."""
    about = (pair, "mean", "bleu", "random-6", 0.1, 0.125, "yes")
    # Without dropout random-12 lowers dev loss more, though random-6 has the lower mean: of others.
    alone = [
        (pair, "dev", "dev_loss", run, 0.0, share, "no", *against, loss, None, None, 5)
        for run, share, mean, apart in (
            ("random-6-d0", 0.125, 2.2, -0.1),
            ("random-12-d0", 0.25, 2.25, -0.35),
        )
        for against, loss in ((("", ""), mean), (("baseline", "baseline"), apart))
    ]
    at = (pair, "mean", "bleu", "random-12-d0", 0.0, 0.25, "no")
    alone.append((*at, "baseline", "baseline", 0.75, 0.25, 1.25, 5))
    return [
        (pair, "mean", "bleu", "baseline", 0.0, 0.0, "no", "", "", 30.0, None, None, 5),
        (pair, "mean", "bleu", "baseline-d0.3", 0.3, 0.0, "yes", "", "", 32.0, None, None, 5),
        (pair, "mean", "bleu", "baseline-d0.4", 0.4, 0.0, "no", "", "", 32.5, None, None, 5),
        (
            pair,
            "mean",
            "bleu",
            "baseline-d0.4",
            0.4,
            0.0,
            "no",
            "tuned dropout",
            "baseline-d0.3",
            0.5,
            0.2,
            0.8,
            5,
        ),
        *alone,
        (pair, "dev", "update", "random-6", 0.1, 0.125, "yes", "", "", 450, None, None, 5),
        (*about, "", "", 31.5, None, None, 5),
        (*about, "same dropout", "baseline-d0.1", *alike, 5),
        (*about, "tuned dropout", "baseline-d0.3", *tuned, 5),
    ]


def plant_little_text(kept, first, second):
    rows = contest(SMALL, *first) + contest(LARGE, *second)
    plant_regularised(kept, "lowdata", pd.DataFrame(rows, columns=REGULARISED))


def plant_regularised(kept, experiment, table):
    sizes = pd.DataFrame(
        [
            (pair, "train", "both", "sentences", number)
            for pair, number in ((SMALL, 3000), (LARGE, 10000))
        ],
        columns=["pair", "split", "side", "statistic", "value"],
    )
    plant(kept, experiment, headmask_regularisation=table, corpus=sizes, cost=cost(60, 30))


def test_masks_beside_tuned_dropout(kept):
    gain, loss, neither = (1.5, 0.5, 2.5), (-0.5, -0.8, -0.2), (0.1, -0.4, 0.6)
    plant_little_text(kept, (gain, loss), (neither, (0.3, None, None)))
    page = page_of(kept)
    told = (
        "- **When masking helps BLEU.**\n"
        "    - With 3,000 training pairs and the baseline's dropout of 0 "
        "the masks of lowest dev loss, `random-12-d0`, change BLEU by +0.75 (+0.25 to +1.25) to "
        "the baseline (that they help: holds). Of the dropouts that were tried with masks (0, 0.1) "
        "dev loss chooses `random-6`, whose masks change BLEU by +1.50 (+0.50 to +2.50) to as much "
        "dropout without masks (`baseline-d0.1`), and by -0.50 (-0.80 to -0.20) to tuned dropout "
        "(`baseline-d0.3`) (that they help, to both: does not hold).\n"
        "    - With 10,000 "
    )
    assert told in page
    cells = "0.1 | 12.5 % | yes | 5 | 450 | – | 31.50 | – | +1.50 (+0.50 to +2.50) |"
    assert f"| {SMALL} | random-6 | {cells} -0.50 (-0.80 to -0.20) |" in page
    same = "that of as much dropout without masks, with all of its interval, for"
    tuned = "that of tuned dropout, with all of its interval, for"
    assert (
        f"- `{SMALL}`: Of runs with masks BLEU is above {same} `random-6`; below it for no run. Of "
        f"runs with masks BLEU is above {tuned} no run; below it for `random-6`. Of runs without "
        f"masks BLEU is above {tuned} `baseline-d0.4`; below it for no run." in page
    )
    sizes = "3,000 training pairs and 10,000 training pairs of Multi30k, trainings of each run: 5;"
    assert sizes in page.replace("\n", " ")
    (kept / "lowdata/tables/corpus.csv").unlink()
    assert f"With `{SMALL}` and the baseline's dropout" in page_of(kept)


def test_little_text_carries_the_warnings_of_its_tables(kept):
    """Without 0.4, tuned dropout is the highest; of 5 trainings of random-6 0.4 · 5 were cut short.

    Of the larger text they were not, and 0.3 lies below 0.4.
    """
    both = (1.5, 0.5, 2.5), (-0.5, -0.8, -0.2)
    plant_little_text(kept, both, both)
    table = pd.read_csv(kept / "lowdata/tables/headmask_regularisation.csv")
    table = table[(table["run"] != "baseline-d0.4") | (table["pair"] == LARGE)]
    ends = table[(table["statistic"] == "update") & (table["pair"] == SMALL)]
    ends = ends.assign(statistic="cut_short", value=0.4)
    few = ends.assign(statistic="update", run="random-6-d0.3", chosen="no", seeds=1)
    plant(kept, "lowdata", headmask_regularisation=pd.concat([table, ends, few]))
    keys = ["pair", "run", "seed", "collapsed"]
    rows = [(SMALL, "impt-6", 1, "no"), (SMALL, "impt-6", 2, "yes")]
    plant(kept, "lowdata", headmask_collapse=pd.DataFrame(rows, columns=keys))
    page = page_of(kept)
    tuned = "tuned dropout (`baseline-d0.3`, the highest that was tried without masks) (that"
    assert f"to {tuned}" in page
    # Chosen are random-6 and the run of tuned dropout, of which no end is planted.
    ended = "Dev loss had not turned in 2 of the 5 trainings chosen"
    assert f"{ended}. Too few trainings to be chosen: `random-6-d0.3` (1).\n    - With" in page
    listed = page.partition("What to bear in mind:\n\n")[2].partition("\n\n")[0].splitlines()
    assert [line[:70] for line in listed] == [
        f"- impt-6, seed 2 of {SMALL} collapsed in training (table headmask_collapse"[:70],
        f"- {SMALL}: 2 of 5 trainings (random-6) ended before dev loss had turned"[:70],
        f"- {SMALL}: tuned dropout: the highest that was tried without masks, so tha"[:70],
        f"- {SMALL}: too few trainings to be chosen: random-6-d0.3 (1). With more"[:70],
        f"- {SMALL}: no run masks heads at tuned dropout (baseline-d0.3), so tha"[:70],
        f"- {LARGE}: no run masks heads at tuned dropout (baseline-d0.3), so tha"[:70],
    ]


def test_one_dropout_is_no_highest(kept):
    both = (1.5, 0.5, 2.5), (-0.5, -0.8, -0.2)
    plant_little_text(kept, both, both)
    table = pd.read_csv(kept / "lowdata/tables/headmask_regularisation.csv")
    others = (table["share"] == 0) & (table["run"] != "baseline-d0.3")
    plant(kept, "lowdata", headmask_regularisation=table[~others])
    page = page_of(kept)
    assert "(`baseline-d0.3`, the only one that was tried without masks) (that" in page
    assert f"{SMALL}: tuned dropout: the only one that was tried without masks, so that" in page


@pytest.mark.parametrize(
    ("alike", "tried", "beside"),
    [
        ("baseline-d0.1", ["baseline-d0.4"], "the dropouts that were tried; higher ones were not"),
        ("baseline-d0.3", ["baseline-d0.4"], "the dropouts that were tried; higher ones were not"),
        ("baseline-d0.3", ["baseline-d0.4", "baseline"], "the one dropout that was tried"),
        ("baseline-d0.1", [], ""),  # 0.4 was tried as well, and dev loss chose 0.3
        ("baseline-d0.3", [], ""),
    ],
)
def test_what_helps_beside_the_highest_dropout_is_not_said_of_higher_ones(
    kept, alike, tried, beside
):
    """`alike` has as much dropout as the masks that were chosen, and may be the tuned one."""
    gain = (1.5, 0.5, 2.5)
    plant_little_text(kept, (gain, gain), (gain, gain))
    table = pd.read_csv(kept / "lowdata/tables/headmask_regularisation.csv")
    table.loc[table["reference"] == "same dropout", "against"] = alike
    plant(kept, "lowdata", headmask_regularisation=table[~table["run"].isin(tried)])
    to = ", to both" if alike == "baseline-d0.1" else ""
    verdict = f"(that they help{to}: holds{' beside ' * bool(beside)}{beside})"
    assert page_of(kept).count(f") {verdict}.") == 4  # both texts, in short and in full


def test_what_helps_is_not_said_of_higher_dropouts_that_ended_early(kept):
    """Of five trainings with 0.4 three ended before dev loss had turned; 0.3 is tuned."""
    gain = (1.5, 0.5, 2.5)
    plant_little_text(kept, (gain, gain), (gain, gain))
    table = pd.read_csv(kept / "lowdata/tables/headmask_regularisation.csv")
    ends = table[table["run"] == "baseline-d0.4"].drop_duplicates(["pair", "run"])
    ends = ends.assign(statistic="cut_short", value=0.6)
    plant(kept, "lowdata", headmask_regularisation=pd.concat([table, ends]))
    page = page_of(kept)
    beside = "the dropouts at which dev loss turned; higher ones ended before"
    assert page.count(f": holds beside {beside}).") == 4
    assert "tuned dropout (`baseline-d0.3`, the highest at which dev loss turned) (that" in page


def test_one_seed_of_a_pair_is_no_verdict_on_its_runs(kept):
    both = (1.5, None, None), (-0.5, None, None)
    plant_little_text(kept, ((1.5, 0.5, 2.5), (-0.5, -0.8, -0.2)), both)
    path = kept / "lowdata/tables/headmask_regularisation.csv"
    table = pd.read_csv(path)
    table.loc[table["pair"] == LARGE, ["low", "high", "seeds"]] = None, None, 1
    table.to_csv(path, index=False)
    page = page_of(kept)
    assert "and by -0.50 (one training) to tuned dropout (`baseline-d0.3`)" in page
    assert "trainings of each run: 1 to 5;" in page.replace("\n", " ")
    assert f"- `{SMALL}`: Of runs" in page and f"- `{LARGE}`: Of runs" not in page


def test_heads_chosen_by_importance_beside_as_many_at_random(kept):
    """Of the smaller text; random heads that rest, beside those that do not, are no such choice."""
    plant_little_text(kept, ((1, 0, 2), (1, 0, 2)), ((1, 0, 2), (1, 0, 2)))
    rows = [("impt-6-signed", "mean", 0.5, 0.25, 0.75), ("impt-6-signed", "test", 9.0, 8.0, 10.0)]
    rows.append(("random-6-rest3", "mean", 7.0, 6.0, 8.0))
    table = pd.DataFrame(rows, columns=["run", "test_set", "value", "low", "high"])
    table = table.assign(pair=SMALL, statistic="bleu", reference="random", against="random-6")
    plant(kept, "lowdata", headmask_variants=table)
    told = "With 3,000 training pairs heads chosen by importance, in place of as many at random, "
    told += "change BLEU by +0.50 (+0.25 to +0.75) (`impt-6-signed` to `random-6`)."
    page = page_of(kept)
    assert page.count(told) == 2 and page.count("in place of as many at random") == 2


def test_trainings_until_dev_loss_turns_stand_beside_those_that_end_before(kept):
    """Of the larger text alone, with no masks at the baseline's dropout: 0.5 BLEU for 1.5."""
    plant_little_text(kept, *2 * [((1.5, 0.5, 2.5), (-0.5, -0.8, -0.2))])
    rows = contest(LARGE, (0.25, -0.5, 1), (0.5, 0.2, 0.8))
    table = pd.DataFrame(rows, columns=REGULARISED)
    plant_regularised(kept, "lowdata_long", table[~table["run"].str.endswith("-d0")])
    page = page_of(kept)
    told = (
        "With 10,000 training pairs dev loss chooses `random-6`, whose masks change BLEU by +0.25 "
    )
    told += "(-0.50 to +1.00) to as much dropout without masks (`baseline-d0.1`), and by +0.50 "
    assert (
        f"- **Masks with dropout, until dev loss turns.** {told}(+0.20 to +0.80) to tuned" in page
    )
    assert page.count(told) == 2 and page.count("| random-12-d0 |") == 2
    about = "`lowdata_long`: 10,000 training pairs, trainings of each run: 5; 2 encoder"
    assert about in page.replace("\n", " ")
    assert "| [lowdata_long](lowdata_long.md#the-runs) | 0 |" in page


def test_without_masks_no_contest(kept):
    plant_little_text(kept, ((1, 0, 2), (1, 0, 2)), ((1, 0, 2), (1, 0, 2)))
    table = pd.read_csv(kept / "lowdata/tables/headmask_regularisation.csv")
    plant(kept, "lowdata", headmask_regularisation=table[table["share"] == 0])
    assert "With 3,000 training pairs no run that masks heads has been chosen" in page_of(kept)


def test_runs_of_importance_that_have_a_higher_loss_after_as_many_updates():
    """Not one whose interval meets 0, nor one of random heads."""
    known = {"impt-1": 0.1, "impt-2": -0.1, "random-1": 0.1, "impt-4-signed": 0.2}
    losses = [("dev_loss", run, "baseline", low) for run, low in known.items()]
    table = pd.DataFrame(losses, columns=["statistic", "run", "reference", "value"])
    told = _dearer_and_worse(table.assign(low=table["value"]))
    assert told.endswith("with all of its interval, for `impt-1`, `impt-4-signed`.")
    assert _dearer_and_worse(table.assign(low=-1.0)) == ""
