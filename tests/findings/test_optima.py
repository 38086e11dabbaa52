"""Whether tuned dropout is an optimum: among dropouts of planted dev losses and ends."""

import pandas as pd
import pytest

from headcount.findings.headmask.optima import masks_at_tuned, warn_of_edges
from headcount.findings.headmask.regularisation import regularisation_table

PLAIN = {"baseline": (0.0, 2.0), "baseline-d0.2": (0.2, 1.5), "baseline-d0.3": (0.3, 1.6)}


def of_dropouts(losses, cut_short=()):
    """The table of trainings with these dropouts, by run; `losses` are of one seed."""
    rows = [
        ("p", run, 1, rate, loss, 5, float(run in cut_short))
        for run, (rate, loss) in losses.items()
    ]
    columns = ["pair", "run", "seed", "dropout", "dev_loss", "update", "cut_short"]
    bleu = pd.DataFrame(columns=["pair", "run", "seed", "test_set", "bleu"])
    masked = [run for run in losses if run.startswith("random")]
    shares = pd.Series({("p", run): 0.25 for run in masked}, dtype=float)
    models = pd.DataFrame(rows, columns=columns)
    return regularisation_table(models, bleu, shares, masked)


def test_tuned_dropout_between_others_is_no_edge():
    assert warn_of_edges(of_dropouts(PLAIN)) == ()
    higher = of_dropouts(PLAIN | {"random-2-d0.4": (0.4, 1.0), "baseline-d0.3": (0.3, 1.4)})
    assert len(warn_of_edges(higher)) == 1  # that of masks is no dropout alone


def test_a_higher_dropout_of_too_few_trainings_does_not_make_an_optimum():
    table = of_dropouts(PLAIN | {"baseline-d0.4": (0.4, 1.7)}).replace({"seeds": {1: 3}})
    assert warn_of_edges(table) == ()
    higher = table["run"].isin(["baseline-d0.3", "baseline-d0.4"])
    (edge, few) = warn_of_edges(table.assign(seeds=table["seeds"] - 2 * higher))
    assert edge == (
        "p: tuned dropout: the highest of enough trainings, so that a higher one may be better "
        "still."
    )
    assert few.startswith("p: too few trainings to be chosen: baseline-d0.3 (1), baseline-d0.4 (1)")


@pytest.mark.parametrize(
    ("ended", "is_edge"),
    [
        (["baseline-d0.3", "baseline-d0.4"], True),
        (["baseline-d0.3"], False),  # a higher one turned, and is worse
        (["baseline-d0.2", "baseline-d0.3", "baseline-d0.4"], False),  # nor did the tuned one
        (["baseline"], False),
    ],
)
def test_higher_dropouts_that_ended_before_dev_loss_turned_are_an_edge(ended, is_edge):
    first, *others = warn_of_edges(of_dropouts(PLAIN | {"baseline-d0.4": (0.4, 1.7)}, ended))
    assert first.startswith(f"p: {len(ended)} of 4 trainings ({', '.join(ended)}) ended before")
    told = (
        "p: tuned dropout: the highest at which dev loss turned, so that a higher one, in longer "
        "trainings, may be better still."
    )
    assert others == [told] * is_edge


def test_half_of_the_trainings_turned_is_enough():
    table = of_dropouts(PLAIN, ["baseline-d0.3"])
    ends = (table["run"] == "baseline-d0.3") & (table["statistic"] == "cut_short")
    for share, is_edge in ((0.5, False), (0.6, True)):
        table.loc[ends, "value"] = share
        assert any("at which dev loss turned" in told for told in warn_of_edges(table)) == is_edge


def test_masks_at_tuned_dropout_are_compared_with_it_alone():
    masks = {"random-6": (0.0, 1.0), "random-6-d0.2": (0.2, 1.4)}
    found = of_dropouts(PLAIN | masks)
    assert masks_at_tuned(found) == (
        "p: runs that mask heads at tuned dropout (baseline-d0.2): random-6-d0.2; their difference "
        "to the same dropout is that to tuned dropout.",
    )
    beside = found[(found["run"] == "random-6-d0.2") & (found["statistic"] == "dev_loss")]
    values = beside.set_index("reference")["value"]
    assert values["same dropout"] == values["tuned dropout"] == pytest.approx(-0.1)  # 1.4 − 1.5
