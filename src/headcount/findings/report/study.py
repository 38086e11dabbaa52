"""The study of HeadMask as one page, from the tables of kept runs below docs/results.

Every number and every verdict of the page is read or computed from these.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from headcount.base.errors import UserError
from headcount.base.files import write_text
from headcount.base.templates import fill_page
from headcount.findings.results import read_table
from headcount.findings.tables import p_value

COLLAPSE, VARIANTS = "collapse", "headmask_variants"
AWAITED = ("lowdata", "multi30k_short")
"""Experiments of the study whose tables are not on the page yet."""

SMALL = 0.05  # a p below it is called no chance
_TEMPLATE = Path(__file__).with_suffix(".md")


def write_study(kept: Path, out: Path) -> None:
    """Write the page `out` from the folder of kept tables, and its picture beside it.

    Raises UserError where the tables of an experiment are not there.
    """
    locked = _table(kept, COLLAPSE, "headmask_locked")
    over = locked[locked["seed"].isna() & locked["run"].str.startswith("impt")]
    compared = _table(kept, VARIANTS, "headmask_variants")
    held = over[over["held"] > 0]
    free = over[over["held"] == 0]
    trained = locked.dropna(subset="seed")
    first = compared[(compared["statistic"] == "dev_loss") & compared["reference"].isna()]
    values = {
        "seeds": ", ".join(map(str, sorted(trained["seed"].astype(int).unique()))),
        "heads": int(trained["heads"].iloc[0]),
        "locked": [_locked(row, _places(trained, [row["run"]])) for row in free.to_dict("records")],
        "place": _place(free, _places(trained, free.dropna(subset="place_p")["run"])),
        "held": [_held(row) for row in held.to_dict("records")],
        "hold": _hold(held),
        "variants": _variants(compared),
        "winners": _winners(compared),
        "trainings": {
            COLLAPSE: len(trained),
            VARIANTS: int(first["seeds"].sum()),
        },
        "awaited": [name for name in AWAITED if not (kept / name / "tables").is_dir()],
    }
    picture = kept / COLLAPSE / "headmask_locked_fig.png"
    values["picture"] = f"{COLLAPSE}/{picture.name}" if picture.is_file() else ""
    if picture.is_file() and out.parent.resolve() != kept.resolve():
        (out.parent / COLLAPSE).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(picture, out.parent / COLLAPSE / picture.name)
    write_text(out, fill_page(_TEMPLATE, values))


def _table(kept: Path, experiment: str, name: str) -> pd.DataFrame:
    path = kept / experiment / "tables" / f"{name}.csv"
    if not path.is_file():
        raise UserError(
            f"{path}: expected the table of kept runs; python workflow/kept.py page {experiment}"
        )
    return read_table(path)


def _places(trained: pd.DataFrame, runs: Sequence[str]) -> dict[str, float]:
    """Of the heads that trainings of these runs locked in, the share of the decoder's first
    self-attention, and the share by chance; empty where none may be of it.
    """
    known = trained[trained["run"].isin(runs)].dropna(subset="place_both")
    both, chance, ever = known[["place_both", "place_expected", "locked_ever"]].sum()
    return {"both": both / ever, "expected": chance / ever} if ever else {}


def _locked(row: dict, places: dict[str, float]) -> dict[str, str]:
    """What the page says of the trainings of one run."""
    cells = {
        "run": row["run"],
        "seeds": f"{row['seeds_locked']:.0f} of {row['seeds']:.0f}",
        "heads": f"{row['locked_ever']:.1f}",
    }
    if not row["locked_ever"]:
        return cells | dict.fromkeys(("start", "ratio", "slope", "place"), "–")
    ratio = f"{_two(row['locked_slope_ratio'])} / {_two(row['others_slope_ratio'])}"
    return cells | {
        "start": f"{row['locked_from']:.0f}",
        "ratio": ratio,
        "slope": f"{row['locked_slope']:+.2f} / {row['others_slope']:+.2f}",
        "place": "–"
        if not places
        else f"{100 * places['both']:.0f} % (by chance {100 * places['expected']:.0f} %; "
        f"p {p_value(row['place_p'])})",
    }


def _two(number: float) -> str:
    return "–" if pd.isna(number) else f"{number:.2f}"


def _place(free: pd.DataFrame, places: dict[str, float]) -> str:
    """Whether locked heads are of the decoder's first self-attention, in the runs that say."""
    known = free.dropna(subset="place_p")
    found = known[known["place_p"] < SMALL]
    if not places:
        return ""
    return (
        f"Of all heads that runs locked in which may mask those of the decoder's first "
        f"self-attention, {100 * places['both']:.0f} % are of it; more than chance gives "
        f"(p < {SMALL}) in {len(found)} of these {len(known)} runs."
    )


def _held(row: dict) -> dict[str, str]:
    known = not pd.isna(row["held_p"])
    return {
        "updates": f"{row['held']:.0f}",
        "both": f"{row['held_both']:.1f} of {row['n']:.0f}" if known else "–",
        "chance": f"{row['held_expected']:.1f}" if known else "–",
        "p": p_value(row["held_p"]) if known else "–",
    }


def _hold(held: pd.DataFrame) -> str:
    """Whether heads that are held masked at first stay so."""
    known = held.dropna(subset="held_p")
    longer = known[known["held_p"] < SMALL]["held"]
    if longer.empty:
        return (
            "Heads that are held masked from the first update on do not stay masked more often "
            "than chance gives. That a head has been masked is not enough to lock it in."
        )
    return (
        "Heads that are held masked stay so more often than chance gives after holds of "
        f"{', '.join(f'{updates:.0f}' for updates in longer)} updates."
    )


def _runs(compared: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(compared["run"]))


def _cell(of_run: pd.DataFrame, statistic: str, reference: str = "", digits: int = 2) -> str:
    """A mean over seeds, or a difference with its 95 % interval; a dash where there is none."""
    rows = of_run[(of_run["statistic"] == statistic) & (of_run["reference"] == reference)]
    if statistic == "bleu":
        rows = rows[rows["test_set"] == "mean"]
    if rows.empty:
        return "–"
    row = rows.iloc[0]
    if not reference:
        return f"{row['value']:.{digits}f}"
    interval = f" ({row['low']:+.{digits}f} to {row['high']:+.{digits}f})"
    return f"{row['value']:+.{digits}f}" + ("" if pd.isna(row["low"]) else interval)


def _variants(compared: pd.DataFrame) -> list[dict[str, str]]:
    filled = compared.fillna({"reference": ""})
    return [
        {
            "run": run,
            "loss": _cell(of_run, "dev_loss", digits=3),
            "baseline": _cell(of_run, "dev_loss", "baseline", 3),
            "random": _cell(of_run, "dev_loss", "random", 3),
            "bleu": _cell(of_run, "bleu", "baseline", 1),
            "bleu_random": _cell(of_run, "bleu", "random", 1),
            "harm": f"{_cell(of_run, 'harmful_share')} / {_cell(of_run, 'heads_harmful_share')}",
        }
        for run in _runs(compared)
        for of_run in [filled[filled["run"] == run]]
    ]


def _winners(compared: pd.DataFrame) -> str:
    """Which runs have a lower dev loss than the baseline, or than as many heads at random."""
    told = []
    for reference, words in (("baseline", "the baseline"), ("random", "as many heads at random")):
        rows = compared[
            (compared["statistic"] == "dev_loss") & (compared["reference"] == reference)
        ]
        lower = _better(rows[rows["high"] < 0]["run"])
        higher = _better(rows[rows["low"] > 0]["run"])
        told.append(f"Dev loss lies below that of {words}, with all of its interval, for {lower}; ")
        told[-1] += f"above it for {higher}."
    return " ".join(told)


def _better(runs: Sequence[str]) -> str:
    return ", ".join(f"`{run}`" for run in runs) or "no run"
