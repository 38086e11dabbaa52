"""Point 1: which heads Impt-N locks in, of what sign they are, and whether holding them does it."""

import re
from collections.abc import Sequence
from typing import Any

import pandas as pd

from headcount.findings.report.study.collapsed import collapsed_words, marked, named
from headcount.findings.report.study.foretelling import LATER, beginning_later, foretelling
from headcount.findings.report.study.intervals import SMALL, above, with_interval
from headcount.findings.report.study.kept import Kept
from headcount.findings.tables import NONE, p_value

EXPERIMENT = "collapse"
_SHARE = 1 / 8  # of the heads, the paper's 18 of 144


def locking(kept: Kept) -> dict[str, Any]:
    """What the page says of the trainings of `collapse`.

    Nothing while no tables are kept.
    """
    if not kept.begun(EXPERIMENT):
        return {}
    table = kept.table(EXPERIMENT, "headmask_locked")
    over = _over_seeds(table)
    held, free = over[over["held"] > 0], over[over["held"] == 0]
    trained = table.dropna(subset="seed")
    place = _place(free, _places(trained, free.dropna(subset="place_p")["run"]))
    short = short_locking(kept, EXPERIMENT)
    return {
        "experiments": [EXPERIMENT, LATER] if kept.begun(LATER) else [EXPERIMENT],
        "trainings": len(trained),
        "seeds": ", ".join(map(str, sorted(trained["seed"].astype(int).unique()))),
        "heads": int(trained["heads"].iloc[0]),
        "rows": locked_rows(kept, EXPERIMENT),
        "held": [_held(row) for row in held.to_dict("records")],
        "hold": _hold(held),
        "foretold": foretelling(kept, EXPERIMENT, free["run"].tolist()),
        "later": beginning_later(kept),
        "picture": kept.picture(EXPERIMENT, "headmask_locked_fig"),
        "short": short,
        "answer": " ".join(filter(None, (short, place, collapsed_words(kept, EXPERIMENT)))),
    }


def locked_rows(kept: Kept, experiment: str) -> list[dict[str, str]]:
    """What the page says of each run of importance, over its seeds, that holds no heads."""
    table = kept.table(experiment, "headmask_locked")
    over, trained = _over_seeds(table), table.dropna(subset="seed")
    free = over[over["held"] == 0].to_dict("records")
    rows = [_row(row, _places(trained, [row["run"]])) for row in free]
    return marked(kept, experiment, rows)


def _over_seeds(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of runs of importance over their seeds."""
    return table[table["seed"].isna() & table["run"].str.startswith("impt")]


def short_locking(kept: Kept, experiment: str) -> str:
    """What Impt-N of the paper locks in, with its share of heads or the nearest there is."""
    over = _over_seeds(kept.table(experiment, "headmask_locked"))
    plain = over[[bool(re.fullmatch(r"impt-\d+", run)) for run in over["run"]]]
    if plain.empty:
        return "No run of Impt-N as the paper has it has several trainings."
    row = plain.loc[(plain["n"] / plain["heads"] - _SHARE).abs().idxmin()]
    locked, name = f"{row['seeds_locked']:.0f}", named(kept, experiment, row["run"])
    begun = f"{locked} of {row['seeds']:.0f} trainings of {name} locked heads in, "
    begun += f"{with_interval(_bounds(row, 'locked_ever'), 1, '')} on average"
    if not row["locked_ever"]:
        return f"{begun}."
    slope = _bounds(row, "locked_slope")
    verdict = above(slope["low"], slope["high"])
    return (
        f"{begun}, whose mean slope was {with_interval(slope, 2)} nats while they were (that they "
        f"are of harm: {verdict})."
    )


def _bounds(row: pd.Series, column: str) -> dict[str, float]:
    return {"value": row[column], "low": row[f"{column}_low"], "high": row[f"{column}_high"]}


def _places(trained: pd.DataFrame, runs: Sequence[str]) -> dict[str, float]:
    """Of the heads that trainings of these runs locked in, the share of the decoder's first
    self-attention, and the share by chance; empty where none may be of it.
    """
    known = trained[trained["run"].isin(runs)].dropna(subset="place_both")
    both, chance, ever = known[["place_both", "place_expected", "locked_ever"]].sum()
    return {"both": both / ever, "expected": chance / ever} if ever else {}


def _row(row: dict[str, Any], places: dict[str, float]) -> dict[str, str]:
    """What the page says of the trainings of one run."""
    cells = {
        "run": row["run"],
        "seeds": f"{row['seeds_locked']:.0f} of {row['seeds']:.0f}",
        "heads": f"{row['locked_ever']:.1f}",
    }
    if not row["locked_ever"]:
        return cells | dict.fromkeys(("start", "ratio", "slope", "place"), NONE)
    ratio = f"{_two(row['locked_slope_ratio'])} / {_two(row['others_slope_ratio'])}"
    where = NONE
    if places:
        where = f"{100 * places['both']:.0f} % (by chance {100 * places['expected']:.0f} %; "
        where += f"p {_p(row['place_p'])})"
    return cells | {
        "start": f"{row['locked_from']:.0f}",
        "ratio": ratio,
        "slope": f"{row['locked_slope']:+z.2f} / {row['others_slope']:+z.2f}",
        "place": where,
    }


def _two(number: float) -> str:
    return NONE if pd.isna(number) else f"{number:.2f}"


def _p(p: float) -> str:
    return NONE if pd.isna(p) else p_value(p)


def _place(free: pd.DataFrame, places: dict[str, float]) -> str:
    """Whether locked heads are of the decoder's first self-attention, in the runs that say."""
    known = free.dropna(subset="place_p")
    found = known[known["place_p"] < SMALL]
    if not places:
        return ""
    return (
        f"Of all heads that runs locked in which may mask those of the decoder's first "
        f"self-attention, {100 * places['both']:.0f} % are of it; more than chance gives "
        f"(p < {SMALL}) in {len(found)} of these {len(known)} runs, which have the initial weights "
        "and data of each seed in common and do not confirm one another."
    )


def _held(row: dict[str, Any]) -> dict[str, str]:
    known = not pd.isna(row["held_p"])
    return {
        "updates": f"{row['held']:.0f}",
        "both": f"{row['held_both']:.1f} of {row['n']:.0f}" if known else NONE,
        "chance": f"{row['held_expected']:.1f}" if known else NONE,
        "p": _p(row["held_p"]),
    }


def _hold(held: pd.DataFrame) -> str:
    """Whether heads that are held masked at first stay so."""
    known = held.dropna(subset="held_p")
    longer = known[known["held_p"] < SMALL]["held"]
    if known.empty:
        return "No run says what became of heads that were held masked."
    if longer.empty:
        return (
            "Heads that are held masked from the first update on are not seen to stay masked more "
            f"often than chance gives (p at least {SMALL} after each of {len(known)} holds)."
        )
    return (
        "Heads that are held masked stay so more often than chance gives after holds of "
        f"{', '.join(f'{updates:.0f}' for updates in longer)} updates."
    )
