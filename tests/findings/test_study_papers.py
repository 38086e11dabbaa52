"""The study's points on the papers' claims: heads with a function, and Multi30k."""

import pandas as pd
from test_study import cost, kept, locked_heads, locked_table, page_of, plant, variants_table

from headcount.findings.claims.verdicts import ALONE

__all__ = ["kept"]  # a fixture
CLAIMS = ["claim", "verdict", "value", "low", "high", "paper_value", "reason", "seeds"]
BLEU = pd.DataFrame(
    [("baseline", seed, "bleu", "test", 20.0) for seed in (1, 1, 2)],
    columns=["run", "seed", "metric", "test_set", "score"],
).assign(pair="multi30k.en-de")


def claims(*rows, collapsed=None, p=None):
    """Rows of a table of claims; `p` by claim."""
    table = pd.DataFrame(rows, columns=CLAIMS)
    table["p"] = table["claim"].map(p or {})
    words = {"statement": "Says " + table["claim"], "statistic": "number of " + table["claim"]}
    return table.assign(**words, needs="what " + table["claim"] + " needs", collapsed=collapsed)


def test_heads_with_a_function(kept):
    found = claims(
        ("VO-04", "holds", 0.93, 0.9, 0.96, None, "", 3),
        ("VO-07", "undecided", None, None, None, 0.125, "no such run", 0),
        ("VO-10", "does not hold", 0.25, 0.2, 0.3, 0.83, "", 3),
        ("VO-12", "holds", 9.0, 8.0, 10.0, None, "", 3),  # about gates
    )
    plant(kept, "multi30k_seeds", claims=found[:1].assign(verdict="undecided"), cost=cost(1, 1))
    plant(kept, "multi30k_seeds", bleu=BLEU)
    assert "## Heads with a function" not in page_of(kept)
    plant(kept, "roles", claims=found, cost=cost(3600, 3600))
    page = page_of(kept)
    assert (
        "- **Heads with a function.** In `roles`: positional heads: holds (number of VO-04: "
        "0.93 (0.90 to 0.96); trainings: 3); syntactic heads: undecided (number of VO-07: no such "
        "run; trainings: –); a rare-word head: does not hold (number of VO-10: 0.25 (0.20 to "
        "0.30); trainings: 3)." in page
    )
    assert "| claim | statement | `roles` | `multi30k_seeds` |\n|---|---|---|---|\n" in page
    wide = "| VO-04 | Says VO-04 | holds: 0.93 (0.90 to 0.96); trainings: 3 |"
    assert f"{wide} undecided: 0.93 (0.90 to 0.96); trainings: 3 |\n" in page
    rare = "does not hold: 0.25 (0.20 to 0.30); trainings: 3; in the paper 0.83"
    assert f"| VO-10 | Says VO-10 | {rare} | – |\n" in page
    assert page.count("[multi30k_seeds]") == 1  # its hours stand once


def test_multi30k_and_the_papers(kept):
    found = claims(
        ("MI-01", "undecided", 0.4, None, None, 0.08, f"holds{ALONE}; one of 3 models", 3),
        ("HM-01", "holds", 3.0, 2.0, 4.0, None, "", 3),
        ("HM-04", "does not hold", -1.0, -1.5, -0.5, 0.54, "", 3),
        ("HM-14", "undecided", None, None, None, None, "no such run", 0),
        ("MI-02", "undecided", 0.0, None, None, None, "", 3),
        ("VO-04", "holds", 1.0, None, None, None, "", 3),  # on heads with a function
        p={"MI-01": 0.03},  # of two claims of the paper that have a number: 0.06
    )
    told = "decided by: impt, a.en-de; of controls (λ = 0): -1.09 BLEU (a.en-de)"
    failed = claims(
        ("HM-05", "does not hold", -9.0, -9.5, -8.5, None, "of 2: fails in 2 (x); y", 3),
        ("HM-06", "holds", 8.0, 7.5, 8.5, None, f"near: {told}; z", 3),
        collapsed="impt-6, seed 1",
    )
    found = pd.concat([found, failed])
    plant(kept, "multi30k_seeds", claims=found, bleu=BLEU, cost=cost(1, 1))
    page = page_of(kept)
    counts = "Of 6 claims of the papers: holds 2 (1 of collapsed trainings), does not hold 2 (1 "
    counts += "of collapsed trainings), undecided 2 (1 decided if alone)"
    assert f"- **Multi30k, English to German.** {counts}.\n" in page
    assert "Number of seeds so far: 2." in page.replace("\n", " ")
    order = [line.split(" | ")[0] for line in page.splitlines() if " | Says " in line]
    assert order == ["| MI-01", "| HM-01", "| HM-04", "| MI-02", "| HM-05", "| HM-06"]
    assert "for want of what stands behind:\n\n- HM-14 (what HM-14 needs)\n" in page
    number = "number of HM-05 | -9.00 (-9.50 to -8.50); of 2: fails in 2 | – | 3 |"
    assert f"| HM-05 | Says HM-05 | does not hold (of collapsed trainings) | {number}" in page
    assert f"| 8.00 (7.50 to 8.50); {told} | – | 3 |" in page
    number = "number of MI-01 | 0.40 | 0.08 | 3 |"
    assert f"| MI-01 | Says MI-01 | undecided (alone: holds) | {number}" in page
    number = "number of HM-04 | -1.00 (-1.50 to -0.50) | 0.54 | 3 |"
    assert f"| HM-04 | Says HM-04 | does not hold | {number}" in page
    assert (
        "Otherwise than in its paper: HM-04 (number of HM-04: -1.00 (-1.50 to -0.50); the "
        "paper's: 0.54); HM-05 (" in page
    )


def test_multi30k_with_tables_of_masks(kept):
    collapse = pd.DataFrame(
        [("baseline", 0, "no"), ("impt-6", 6, "yes"), ("impt-6", 6, "no"), ("random-6", 6, "no")],
        columns=["run", "n", "collapsed"],
    ).assign(top_group_delta=None)
    plant(kept, "multi30k_seeds", headmask_locked_heads=locked_heads())
    plant(kept, "multi30k_seeds", claims=claims(("HM-01", "holds", 3.0, 2.0, 4.0, None, "", 3)))
    plant(kept, "multi30k_seeds", headmask_variants=variants_table(), headmask_collapse=collapse)
    plant(kept, "multi30k_seeds", headmask_locked=locked_table(), cost=cost(1, 1))
    plant(kept, "multi30k_seeds", bleu=BLEU)
    rows = [("baseline", 1, 1.0, "ours"), ("random-6", None, 9.0, "Sun et al. 2020")]
    rows += [("random-6", 1, 0.5, "ours"), ("random-6", 2, 0.7, "ours"), ("impt-6", 1, 3, "ours")]
    variance = pd.DataFrame(rows, columns=["run", "seed", "ratio_to_baseline", "source"])
    mean = variance.assign(ratio_to_baseline=2.0)
    plant(kept, "multi30k_seeds", headmask_table5=variance, headmask_table6=mean)
    page = page_of(kept)
    # Of 0.5 and 0.7: √0.35; logarithms have a standard error of ln(1.4) / 2 = 0.1682, t 12.7062, so
    # that the interval goes from √0.35 / 8.479 to √0.35 · 8.479; one training has no interval.
    told = "the variance of head importance is `random-6` 0.59 (0.07 to 5.02), `impt-6` (1 of 2 "
    told += "collapsed) 3.00; the mean of head importance is `random-6` 2.00, `impt-6` (1 of 2 "
    told = f"Divided by the baseline's (geometric means over trainings), {told}collapsed) 2.00."
    assert f"- {told}\n" in page
    assert (
        "Masks change BLEU (trainings of each run: 1): `impt-6` (1 of 2 collapsed) by -1.50 "
        "(-2.00 to -1.00); of 1 claims" in page
    )
    words = "Trainings that collapsed: `impt-6` 1 of 2."
    assert page.count(words) == 1
    # Its row is marked here, and not among those of another experiment.
    assert page.count("| impt-6 (1 of 2 collapsed) | 0.500 |") == 1
    assert page.count("| impt-6 | 0.500 |") == 1
    assert page.count("| impt-6 (1 of 2 collapsed) | 2 of 2 | 4.0 / 2.0 |") == 1
    assert page.count("2 of 2 trainings of `impt-6` locked heads in") == 2  # short, answer
    assert page.count("2 of 2 trainings of `impt-6` (1 of 2 collapsed) locked heads in") == 1
    assert "No claim is found against its paper." in page


def test_claims_without_a_run_are_those_of_another_experiment(kept):
    """Of the claims without a run, those that one of the others has a run for."""
    none = ("undecided", None, None, None, None, "no such run", 0)
    found = claims(("HM-04", "holds", 1.0, 0.5, 1.5, None, "", 3), ("HM-14", *none))
    found = pd.concat([found, claims(("VO-12", *none), ("VO-22", *none))])
    plant(kept, "multi30k_seeds", claims=found, bleu=BLEU, cost=cost(1, 1))
    here = "are judged by experiment"
    page = page_of(kept)
    assert "of 1 claims of the papers: holds 1" in page.lower()
    assert here not in page
    other = claims(
        ("HM-04", "does not hold", 9.0, 8.0, 10.0, None, "", 3),  # has a run where it belongs
        ("HM-14", "undecided", 0.2, -0.1, 0.5, None, "seeds share 40% of their top heads", 3),
        ("VO-12", *none),
        ("VO-22", *none),
    )
    plant(kept, "multi30k_gates", claims=other, cost=cost(1, 1))
    other = claims(("HM-14", *none), ("VO-22", "holds", 0.5, 0.25, 0.75, 0.4, "", 3))
    plant(kept, "multi30k_from_none", claims=other, cost=cost(1, 1))
    page = page_of(kept)
    assert "of 3 claims of the papers: holds 2, undecided 1" in page.lower()
    assert "\n- VO-12 (what VO-12 needs)\n" in page
    told = page.replace("\n", " ")
    assert f"Claims that have no run there (HM-14) {here} `multi30k_gates`: 3 encoder" in told
    assert f"Claims that have no run there (VO-22) {here} `multi30k_from_none`: 3 encoder" in told
    order = [line.split(" | ")[0] for line in page.splitlines() if " | Says " in line]
    assert order == ["| HM-04", "| HM-14", "| VO-22"]
    assert "| HM-04 | Says HM-04 | holds |" in page
    assert (
        "| VO-22 | Says VO-22 | holds | number of VO-22 | 0.50 (0.25 to 0.75) | 0.40 | 3 |" in page
    )
    assert page.count("[multi30k_gates]") == 1  # its hours


def test_claims_of_several_experiments_are_corrected_together(kept):
    """HM-05 has p 0.03. With HM-14, of another experiment, there are two: 2 · 0.03 is above 0.05.

    So it is with a claim that holds there alone, and had been corrected for others than these.
    """
    none = ("undecided", None, None, None, None, "no such run", 0)
    lost = ("HM-05", "does not hold", -9.0, -9.5, -8.5, None, "near", 3)
    plant(kept, "multi30k_seeds", claims=claims(lost, ("HM-14", *none), p={"HM-05": 0.03}))
    plant(kept, "multi30k_seeds", bleu=BLEU, cost=cost(1, 1))
    assert "| HM-05 | Says HM-05 | does not hold | number" in page_of(kept)
    early = claims(("HM-14", "holds", 0.6, 0.5, 0.7, None, "near", 3), p={"HM-14": 0.04})
    plant(kept, "multi30k_gates", claims=early, cost=cost(1, 1))
    page = page_of(kept)
    assert "| HM-05 | Says HM-05 | undecided (alone: does not hold) | number" in page
    assert "| HM-14 | Says HM-14 | undecided (alone: holds) | number" in page


def test_what_pruned_models_cost(kept):
    """BLEU means over shared test sets, then trainings; a control costs nothing and has no row."""
    rows = [
        ("gates-all-l0", 1, "a", 0.0, 48, 0.0),
        ("gates-all-l0.1", 1, "a", 0.1, 12, -1.0),
        ("gates-all-l0.1", 1, "b", 0.1, 12, -2.0),
        ("gates-all-l0.1", 2, "a", 0.1, 9, -3.0),
        ("gates-all-l0.1", 2, "b", 0.1, 9, -4.0),
        ("gates-all-l0.1", 1, "of one alone", 0.1, 12, -90.0),
        ("scratch-gates-all-l0.1", 1, "a", 0.1, 12, -0.25),
    ]
    table = pd.DataFrame(rows, columns=["run", "seed", "test_set", "lambda", "scope_left", "delta"])
    table = table.assign(scope_heads=48, pair="multi30k.en-de")
    plant(kept, "multi30k_seeds", voita_pruning=table)
    plant(kept, "multi30k_seeds", claims=claims(("HM-01", "holds", 3.0, 2.0, 4.0, None, "", 3)))
    plant(kept, "multi30k_seeds", bleu=BLEU, cost=cost(1, 1))
    page = page_of(kept)
    # −1.5 and −3.5: −2.5, standard error 1, t 12.7062.
    row = "| multi30k_seeds | gates-all-l0.1 | 10.5 of 48 | -2.50 (-15.21 to +10.21) | 2 |\n"
    assert f"{row}| multi30k_seeds | scratch-gates-all-l0.1 | 12.0 of 48 | -0.25 | 1 |\n" in page
    assert "gates-all-l0 |" not in page
