"""The ledger as a table: a verdict on every claim, computed from files of results."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import isnan, nan
from pathlib import Path

import numpy as np
import pandas as pd

from headcount.findings import exhibits
from headcount.findings.claims.decisions import decide
from headcount.findings.claims.evidence import FLOOR, Evidence
from headcount.findings.claims.ledger import (
    PAPERS,
    Claim,
    beside_ours,
    claims,
    paper_of,
    printed_words,
)
from headcount.findings.claims.verdicts import (
    ALONE,
    FAILS,
    HOLDS,
    MIN_SEEDS,
    UNDECIDED,
    VERDICTS,
    Decision,
)
from headcount.findings.results import Results
from headcount.findings.significance import ALPHA, holm
from headcount.findings.tables import NONE, Table, p_value, with_bounds

COLUMNS = ["claim", "paper", "place", "statement", "printed", "verdict", "reason", "statistic"]
COLUMNS += ["value", "low", "high", "p", "p_adjusted", "seeds", "experiments", "files", "needs"]
COLUMNS += ["run_by", "about", "limits", "limits_from", "paper_value", "difference", "collapsed"]
COLUMNS += ["tests"]

_NOTES = (
    "Holds, does not hold: by the limits of the claim in findings/claims/ledger.yaml, at "
    f"p < {ALPHA} where there is a p; undecided: neither, for the reason told.",
    "A claim about a trained model is decided for each model, on its test sentences, and has a "
    "verdict if all models agree: with one training it is a verdict on that one. A claim that "
    f"compares ways of training needs {MIN_SEEDS} seeds, or trainings in VO-03 and VO-11. "
    f"Trainings whose baseline has less than {FLOOR:g} BLEU on every test set decide nothing.",
    "Value: the statistic, with its 95 % interval; of several models the mean (VO-13, VO-23, VB-04 "
    "and X-01: the one that the words name), and an interval that covers all of theirs. p of a "
    "BLEU difference is sacreBLEU's, near a one-sided one; others are two-sided, but for VO-03, "
    "VO-15 and VB-03. Adjusted: p times the number of tests that could have decided, then Holm, "
    "over all claims of a paper that have a number.",
    "Random-18 and Impt-18 are the paper's, 18 of its 144 heads; they are decided by the run that "
    "masks as large a share of the heads.",
    "Collapsed: a training that table headmask_collapse calls so; the number is then of a failed "
    "training; how many fail is a result.",
)


@exhibits.table(
    "claims",
    needs=("exhibits",),
    uses=("masking", "ablation_facts", "positions", "syntax", "role_facts"),
)
def ledger(results: Results) -> Table:
    """Verdicts on the papers' claims."""
    files = [
        path
        for kind in (*ledger.exhibit.needs, *ledger.exhibit.uses)
        for path in results.files(kind)
    ]
    tidy = ledger_table(Evidence(files), claims())
    counts = Counter(tidy["verdict"])
    told = ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name])
    experiments = sorted({each for cell in tidy["experiments"] for each in cell.split()})
    caption = f"What results say of {len(tidy)} claims of the papers: {told}. "
    caption += f"From: {', '.join(experiments) or 'no results'}."
    return Table(tidy, _summary(tidy), caption, _NOTES)


def ledger_table(evidence: Evidence, known: Mapping[str, Claim]) -> pd.DataFrame:
    """A claim a row: columns of `COLUMNS`; cells are empty where there is no number.

    `paper_value` is the paper's own number of the statistic, of several their mean, `difference`
    ours minus it. `collapsed` names trainings behind the number of which table headmask_collapse
    says so. `files` are those that were read, `run_by` the experiments in config/ that decide
    it; `limits` are named as by the function that decides. `collapsed`: those trainings behind the
    number of which table headmask_collapse says so.
    """
    found = {name: decide(claim, evidence) for name, claim in known.items()}
    decisions = {name: decision for name, (decision, _) in found.items()}
    adjusted = adjust(decisions)
    rows = []
    for name, claim in known.items():
        final = corrected(decisions[name], adjusted[name])
        numbers = (final.value, final.low, final.high, final.p, adjusted[name])
        files, theirs = found[name][1], beside_ours(name, claim)
        rows.append(
            (name, PAPERS[paper_of(name)][1], claim.place, claim.statement)
            + (printed_words(name, claim), final.verdict, _reason(final), claim.statistic)
            + tuple("" if isnan(number) else number for number in numbers)
            + (final.seeds, " ".join(sorted({_experiment(path) for path in files})))
            + (" ".join(map(_within, files)), claim.needs.run, " ".join(claim.needs.experiments))
            + (claim.about, _limits(claim), claim.limits_from)
            + tuple("" if isnan(number) else number for number in (theirs, final.value - theirs))
            + (final.collapsed, final.tests)
        )
    return pd.DataFrame(rows, columns=COLUMNS)


def _reason(decision: Decision) -> str:
    """Its reason, and which trainings behind it collapsed."""
    failed = decision.collapsed and f"collapsed: {decision.collapsed}"
    return "; ".join(filter(None, (decision.reason, failed)))


def _limits(claim: Claim) -> str:
    """Its thresholds in one line, by the names that the function which decides it gives them."""
    return ", ".join(f"{name}: {value}" for name, value in claim.limits.items())


def _experiment(path: Path) -> str:
    """Name of the results that a file belongs to."""
    return path.parents[_depth(path)].name


def _within(path: Path) -> str:
    """A file from the folder of its results on, wherever that is."""
    return path.relative_to(path.parents[_depth(path) + 1]).as_posix()


def _depth(path: Path) -> int:
    return 4 if path.parent.name.startswith("seed") else 1


def adjust(decisions: Mapping[str, Decision]) -> dict[str, float]:
    """P by claim, corrected by Holm within each paper; NaN where there is none.

    Before that p is multiplied by the number of tests that could have decided as its own did. All
    claims of the paper that have a number count, also those without p: which of them rest on a test
    is seen from the numbers, so that a family of these alone would be chosen by its outcome.
    """
    adjusted = {}
    for paper in PAPERS:
        of_paper = [name for name in decisions if paper_of(name) == paper]
        family = [name for name in of_paper if not isnan(decisions[name].value)]
        p_values = [decisions[name].p * decisions[name].tests for name in family]
        corrected_once = np.minimum(np.nan_to_num(p_values, nan=1.0), 1.0)
        adjusted |= dict(zip(family, holm(corrected_once).tolist(), strict=True))
    return {n: nan if isnan(d.p) else adjusted[n] for n, d in decisions.items()}


def corrected(decision: Decision, p_adjusted: float) -> Decision:
    """The decision, undecided if it rests on a p that its family's correction lifts to α."""
    if decision.verdict in (HOLDS, FAILS) and decision.p < ALPHA <= p_adjusted:
        reason = f"{decision.verdict}{ALONE}; {decision.reason}"
        return replace(decision, verdict=UNDECIDED, reason=reason)
    return decision


def _summary(tidy: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it."""
    shown = pd.DataFrame()
    for column in ("claim", "statement", "verdict", "statistic"):
        shown[column] = tidy[column]
    bounds = tidy[["value", "low", "high"]].itertuples(index=False, name=None)
    shown["value"] = [with_bounds(*row) for row in bounds]
    shown["paper"] = [with_bounds(value, "", "") for value in tidy["paper_value"]]
    shown["difference"] = [f"{each:+.2f}" if each != "" else NONE for each in tidy["difference"]]
    shown["p"] = tidy["p"].map(p_value)
    shown["p adjusted"] = tidy["p_adjusted"].map(p_value)
    shown["seeds"] = [str(seeds) if seeds else NONE for seeds in tidy["seeds"]]
    shown["why"] = tidy["reason"]
    undecided = tidy["verdict"] == UNDECIDED
    needs = tidy["needs"] + " (" + tidy["run_by"].replace("", "no file") + ")"
    shown["what decides it"] = needs.where(undecided, NONE)
    return shown
