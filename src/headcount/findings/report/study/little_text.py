"""Point 3: where masked heads help BLEU as a regulariser, beside the baseline and tuned dropout."""

from typing import Any

import pandas as pd

from headcount.findings.claims.verdicts import FAILS, HOLDS, UNDECIDED
from headcount.findings.headmask.optima import (
    Edge,
    cut_short,
    edge_of,
    masks_at_tuned,
    too_few,
    warn_of_edges,
)
from headcount.findings.masked_training import warn_of
from headcount.findings.report.study.choosing import of_importance
from headcount.findings.report.study.design import sizes
from headcount.findings.report.study.intervals import above, listed, span, with_interval
from headcount.findings.report.study.kept import Kept
from headcount.findings.results import BASE, KEYS
from headcount.findings.tables import NONE

EXPERIMENT = "lowdata"
LONG = "lowdata_long"
REFERENCES = {"same dropout": "as much dropout without masks", "tuned dropout": "tuned dropout"}
_KEY = ["statistic", "test_set"]
_BLEU, _LOSS = ("bleu", "mean"), ("dev_loss", "dev")


def little_text(kept: Kept) -> dict[str, Any]:
    """What the page says of masked heads as a regulariser; a contest for each pair of languages.

    Nothing while no tables are kept.
    """
    return _regularised(kept, EXPERIMENT) if kept.begun(EXPERIMENT) else {}


def longer(kept: Kept) -> dict[str, Any]:
    """As `little_text`, of trainings with dropout that go on until dev loss turns."""
    return _regularised(kept, LONG) if kept.begun(LONG) else {}


def _regularised(kept: Kept, experiment: str) -> dict[str, Any]:
    """What the page says of one experiment, from its table of masks and dropout."""
    table = kept.compared(experiment, "headmask_regularisation")
    named = {pair: f"`{pair}`" for pair in table["pair"].unique()}
    text = {pair: sizes(kept, experiment).get(pair, name) for pair, name in named.items()}
    means = table[(table["statistic"] == "bleu") & (table["reference"] == "")]
    of_pair = list(table.groupby("pair", sort=False))
    contests = [f"With {text[pair]} {_contest(rows)}." for pair, rows in of_pair]
    found = [(pair, _ranked(kept, experiment, pair)) for pair, _ in of_pair]
    ranked = [f"With {text[pair]} {told}." for pair, told in found if told]
    collapsed = _collapsed(kept, experiment)
    return {
        "experiments": [experiment],
        "seeds": span(means["seeds"]),
        "sizes": " and ".join(text.values()),
        "rows": [
            {"pair": pair, **_row(rows)}
            for (pair, _), rows in table.groupby(["pair", "run"], sort=False)
        ],
        "answer": [*contests, *ranked]
        + [f"`{pair}`: {told}" for pair, x in of_pair if (told := _winners(x))],
        "warnings": [*collapsed, *warn_of_edges(table), *masks_at_tuned(table)],
        "picture": kept.picture(experiment, "headmask_regularisation"),
        "short": contests + ranked,
    }


def _collapsed(kept: Kept, experiment: str) -> list[str]:
    """A sentence for each training that its table calls collapsed, where there is one."""
    if not kept.has(experiment, "headmask_collapse"):
        return []
    table = kept.table(experiment, "headmask_collapse")
    found = table.loc[table["collapsed"] == "yes", KEYS]
    return [warn_of(*key) for key in found.itertuples(index=False, name=None)]


def _of(rows: pd.DataFrame, what: tuple[str, str], reference: str) -> pd.DataFrame:
    """BLEU or dev loss: the means, without a reference, or the differences to one."""
    return rows[(rows[_KEY] == list(what)).all(axis=1) & (rows["reference"] == reference)]


def _contest(rows: pd.DataFrame) -> str:
    """What masks change where there is no more dropout than the baseline's, and where there is."""
    chosen = rows[(rows["chosen"] == "yes") & (rows["share"] > 0)]
    if chosen.empty:
        return "no run that masks heads has been chosen yet"
    edge = edge_of(rows)
    tuned = chosen.loc[chosen["reference"] == "tuned dropout", "against"]
    named = ", ".join([f"`{name}`" for name in tuned[:1]] + ([edge.which] if edge else []))
    words = f"tuned dropout ({named})" if named else "tuned dropout"
    late = cut_short(rows[rows["chosen"] == "yes"])[:2]
    ends = ". Dev loss had not turned in {} of the {} trainings chosen" if late[0] else ""
    gains = _contested(chosen, tuned, words, edge)
    told = f"{_alone(rows)}dev loss chooses `{chosen['run'].iloc[0]}`"
    few = [f"`{run}` ({n:.0f})" for run, n in too_few(rows).items()]
    others = f". Too few trainings to be chosen: {', '.join(few)}" if few else ""
    return f"{told}, whose masks {gains}{ends.format(*late)}{others}"


def _contested(chosen: pd.DataFrame, tuned: pd.Series, words: str, edge: Edge | None) -> str:
    """What chosen masks change to tuned dropout, and to as much dropout where that is another.

    Masks help where they do to both: one of them may differ by its dropout alone.
    """
    same = chosen.loc[chosen["reference"] == "same dropout", "against"]
    if same.empty or tuned.empty or same.iloc[0] == tuned.iloc[0]:
        return _gain(chosen, "tuned dropout", words, edge)
    found = [_of(chosen, _BLEU, each) for each in ("same dropout", "tuned dropout")]
    beside = f"as much dropout without masks (`{same.iloc[0]}`)"
    if found[1].empty and len(found[0]):
        return _gain(chosen, "same dropout", beside)
    if any(each.empty for each in found):
        return _gain(chosen, "tuned dropout", words, edge)
    rows = [each.iloc[0] for each in found]
    verdicts = [above(row["low"], row["high"]) for row in rows]
    both = next(each for each in (FAILS, UNDECIDED, HOLDS) if each in verdicts)
    alike, other = map(_difference, rows)
    helps = f"(that they help, to both: {_at_edge(both, edge)})"
    return f"change BLEU by {alike} to {beside}, and by {other} to {words} {helps}"


def _alone(rows: pd.DataFrame) -> str:
    """What the masks of lowest dev loss change where dropout is the baseline's; empty without.

    Lowest is the difference to the baseline of the same seeds, for runs may have other seeds.
    """
    base = rows.loc[rows["run"] == BASE, "dropout"]
    masked = rows[(rows["share"] > 0) & rows["dropout"].isin(base)]
    losses = _of(masked, _LOSS, "baseline")
    if losses.empty:
        return ""
    best = losses.loc[losses["value"].idxmin(), "run"]
    tried = sorted(rows.loc[rows["share"] > 0, "dropout"].unique())
    dropouts = ", ".join(f"{dropout:g}" for dropout in tried)
    gain = _gain(masked[masked["run"] == best], "baseline", "the baseline")
    return (
        f"and the baseline's dropout of {base.iloc[0]:g} the masks of lowest dev loss, `{best}`, "
        f"{gain}. Of the dropouts that were tried with masks ({dropouts}) "
    )


def _gain(rows: pd.DataFrame, reference: str, words: str, edge: Edge | None = None) -> str:
    """What one run changes in BLEU to a reference, and whether masks help.

    `edge` as in `_at_edge`.
    """
    found = _of(rows, _BLEU, reference)
    if found.empty:
        return f"are not compared with {words}"
    row = found.iloc[0]
    helps = _at_edge(above(row["low"], row["high"]), edge)
    return f"change BLEU by {_difference(row)} to {words} (that they help: {helps})"


def _at_edge(verdict: str, edge: Edge | None) -> str:
    """A verdict on tuned dropout, with the dropouts that it holds beside where that is an edge.

    What helps beside it may not beside a dropout that was not tried, and is better still.
    """
    return f"{verdict} beside {edge.beside}" if verdict == HOLDS and edge else verdict


def _difference(row: pd.Series) -> str:
    """A difference of BLEU with its interval, or that one training has none."""
    return with_interval(row, 2) + (" (one training)" if row.get("seeds") == 1 else "")


def _ranked(kept: Kept, experiment: str, pair: str) -> str:
    """What heads chosen by importance change in BLEU to as many at random, of as much dropout.

    Empty without their table, or without such a run.
    """
    if not kept.has(experiment, "headmask_variants"):
        return ""
    table = kept.compared(experiment, "headmask_variants")
    found = of_importance(_of(table[table["pair"] == pair], _BLEU, "random"))
    told = ", ".join(
        f"{_difference(row)} (`{row['run']}` to `{row['against']}`)" for _, row in found.iterrows()
    )
    words = "heads chosen by importance, in place of as many at random, change BLEU by"
    return f"{words} {told}" if told else ""


def _row(rows: pd.DataFrame) -> dict[str, str]:
    """The cells of one pair and run."""
    first, update = rows.iloc[0], rows[rows["statistic"] == "update"]
    seeds = _of(rows, _BLEU, "")["seeds"]
    cells = {
        "run": first["run"],
        "dropout": f"{first['dropout']:g}",
        "share": f"{100 * first['share']:.1f} %",
        "chosen": first["chosen"],
        "trainings": NONE if seeds.empty else f"{seeds.iloc[0]:.0f}",
        "kept_after": NONE if update.empty else f"{update['value'].iloc[0]:.0f}",
    }
    asked = {"loss": (_LOSS, "", 3), "bleu": (_BLEU, "", 2)}
    asked |= {name: (_BLEU, name, 2) for name in ("baseline", "same dropout", "tuned dropout")}
    for name, (what, reference, digits) in asked.items():
        found = _of(rows, what, reference)
        sign = "+" if reference else ""
        cell = NONE if found.empty else with_interval(found.iloc[0], digits, sign)
        cells[name.replace(" ", "_")] = cell
    return cells


def _winners(rows: pd.DataFrame) -> str:
    """Which runs have more BLEU, and which less, than the same or tuned dropout, and masks or not.

    Only runs with masks are compared with the same dropout.
    """
    told = []
    for reference, words in REFERENCES.items():
        found = _of(rows, _BLEU, reference).dropna(subset=["low", "high"])
        for which, of_kind in (("with", found["share"] > 0), ("without", found["share"] == 0)):
            if not of_kind.any():
                continue
            sides = (found["low"] > 0, found["high"] < 0)
            more, less = (listed(found[side & of_kind]["run"]) for side in sides)
            told.append(
                f"Of runs {which} masks BLEU is above that of {words}, with all of its interval, "
                f"for {more}; below it for {less}."
            )
    return " ".join(told)
