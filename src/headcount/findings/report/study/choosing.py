"""Point 2: ways to choose the heads that training masks, beside the baseline and Random-N."""

from typing import Any

import pandas as pd

from headcount.base.errors import UserError
from headcount.base.settings.short_names import TRAINING_WORDS
from headcount.base.settings.training_runs import RunSettings
from headcount.findings.claims.verdicts import UNDECIDED
from headcount.findings.report.study.collapsed import collapsed_words, marked
from headcount.findings.report.study.intervals import listed, some_below, with_interval
from headcount.findings.report.study.kept import Kept
from headcount.findings.results import BASE
from headcount.findings.tables import NONE

EXPERIMENT = "headmask_variants"
REFERENCES = {BASE: "the baseline", "random": "the same N at random"}


def choosing(kept: Kept, experiment: str = EXPERIMENT) -> dict[str, Any]:
    """What the page says of an experiment's ways to choose heads, of one pair of languages.

    Nothing while no tables are kept. Raises UserError for several pairs.
    """
    if not kept.begun(experiment):
        return {}
    compared = kept.compared(experiment, "headmask_variants")
    if compared["pair"].nunique() > 1:
        raise UserError(
            f"table headmask_variants of {experiment}: expected one pair of languages, found "
            f"{', '.join(compared['pair'].unique())}; the page has no place for several"
        )
    rows = [_row(run, rows) for run, rows in compared.groupby("run", sort=False)]
    told = [_answer(compared, reference) for reference in REFERENCES]
    told += [*_winners(compared), _dearer_and_worse(compared)]
    told += [_rests(compared), _locking(compared)]
    first = compared[(compared["statistic"] == "dev_loss") & (compared["reference"] == "")]
    return {
        "experiments": [experiment],
        "trainings": int(first["seeds"].sum()),
        "rows": marked(kept, experiment, rows),
        "picture": kept.picture(experiment, "headmask_variants"),
        "short": [_short(compared)],
        "answer": list(filter(None, [*told, collapsed_words(kept, experiment)])),
    }


def change(
    compared: pd.DataFrame, run: str, statistic: str, reference: str, digits: int = 2
) -> str:
    """A mean over seeds, or a difference with its 95 % interval; a dash where there is none."""
    rows = compared[
        (compared["run"] == run)
        & (compared["statistic"] == statistic)
        & (compared["reference"] == reference)
    ]
    rows = rows[rows["test_set"] == "mean"] if statistic == "bleu" else rows
    if rows.empty:
        return NONE
    return with_interval(rows.iloc[0], digits, "+" if reference else "")


def _row(run: str, rows: pd.DataFrame) -> dict[str, str]:
    shares = [change(rows, run, f"{of}harmful_share", "") for of in ("", "heads_")]
    return {
        "run": run,
        "loss": change(rows, run, "dev_loss", "", 3),
        "baseline": change(rows, run, "dev_loss", "baseline", 3),
        "random": change(rows, run, "dev_loss", "random", 3),
        "bleu": change(rows, run, "bleu", "baseline"),
        "bleu_random": change(rows, run, "bleu", "random"),
        "locked": change(rows, run, "locked_ever", "", 1),
        "harm": " / ".join(shares),
    }


def _against(compared: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Differences of dev loss to a reference, a run a row; to random ones of importance alone."""
    rows = compared[(compared["statistic"] == "dev_loss") & (compared["reference"] == reference)]
    return of_importance(rows) if reference == "random" else rows


def of_importance(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of runs that choose heads by importance."""
    return rows[rows["run"].str.startswith(f"{TRAINING_WORDS['importance']}-")]


def _short(compared: pd.DataFrame) -> str:
    """How many ways raise dev loss above each reference, and what the lowest changes."""
    told = []
    for reference, words in REFERENCES.items():
        if len(rows := _against(compared, reference)):
            lowest = rows.loc[rows["value"].idxmin()]
            bleu = change(compared, lowest["run"], "bleu", reference)
            told.append(
                f"Dev loss is above that of {words} in {(rows['value'] > 0).sum()} of {len(rows)} "
                f"ways to choose, in {(rows['low'] > 0).sum()} with all of the interval; the "
                f"lowest, `{lowest['run']}`{_beside(lowest)}, differs by "
                f"{with_interval(lowest, 3)} nats and {bleu} BLEU."
            )
    return " ".join(told) or "No run is compared with others."


def _answer(compared: pd.DataFrame, reference: str) -> str:
    """Whether any way has a lower dev loss than a reference, and by how much the lowest has."""
    rows, words = _against(compared, reference), REFERENCES[reference]
    if rows.empty:
        return f"No run is compared with {words}."
    lowest = rows.loc[rows["value"].idxmin()]
    verdict = some_below(rows)
    if verdict == UNDECIDED:
        verdict += f" (open for {listed(rows.loc[~(rows['low'] > 0), 'run'])})"
    return (
        f"That some way to choose lowers dev loss below that of {words}: {verdict}; the lowest of "
        f"{len(rows)}, `{lowest['run']}`{_beside(lowest)}, differs by {with_interval(lowest, 3)} "
        "nats."
    )


def _beside(row: pd.Series) -> str:
    """The run that another is compared with, where it is not the baseline."""
    return "" if row["reference"] == BASE else f" (to `{row['against']}`)"


def _dearer_and_worse(compared: pd.DataFrame) -> str:
    """Which runs of importance have a higher dev loss than the baseline after as many updates.

    An update of theirs takes a pass more, so that in equal time they have fewer. Empty where none
    has.
    """
    rows = of_importance(_against(compared, BASE))
    worse = rows.loc[rows["low"] > 0, "run"]
    if worse.empty:
        return ""
    return (
        "To rank heads takes a forward and a backward pass more in an update, so that equal time "
        "is fewer updates; after as many updates dev loss is above that of the baseline, with all "
        f"of its interval, for {listed(worse)}."
    )


def _rests(compared: pd.DataFrame) -> str:
    """What rests alone change in the dev loss of heads drawn at random; empty where none rest."""
    rows = compared[(compared["statistic"] == "dev_loss") & (compared["reference"] == "random")]
    rows = rows.drop(of_importance(rows).index)
    told = [
        f"Rests alone change dev loss by {with_interval(row, 3)} nats (`{row['run']}` to "
        f"`{row['against']}`)."
        for _, row in rows.iterrows()
    ]
    return " ".join(told)


def _locking(compared: pd.DataFrame) -> str:
    """Which runs of importance locked heads in, which never did, and which cannot."""
    rows = of_importance(compared[compared["statistic"] == "locked_ever"])
    if rows.empty:
        return ""
    rest = rows["run"].map(lambda run: RunSettings.model_validate(run).rest > 0)
    never = ~rest & (rows["value"] == 0)
    told = f"Heads were locked in by {listed(rows[~rest & ~never]['run'])}"
    told += f"; never by {listed(rows[never]['run'])}" if never.any() else ""
    cannot = f"; heads that rest, those of {listed(rows[rest]['run'])}, cannot be"
    return told + (cannot if rest.any() else "") + "."


def _winners(compared: pd.DataFrame) -> list[str]:
    """Which runs have a lower dev loss than the baseline, or than as many heads at random.

    Nothing of one seed, which has no interval.
    """
    told = []
    for reference, words in REFERENCES.items():
        rows = _against(compared, reference).dropna(subset=["low", "high"])
        lower, higher = (
            listed(rows[found]["run"]) for found in (rows["high"] < 0, rows["low"] > 0)
        )
        if len(rows):
            told.append(
                f"Dev loss lies below that of {words}, with all of its interval, for {lower}; "
                f"above it for {higher}."
            )
    return told
