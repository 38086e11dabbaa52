"""Point 1: which heads Impt-N locks in, of what sign they are, and whether holding them does it."""

import re
from collections.abc import Sequence
from typing import Any

import pandas as pd

from headcount.base.settings.training_runs import RunSettings
from headcount.findings.kinds import SHORT
from headcount.findings.report.study.collapsed import collapsed_words, marked, named
from headcount.findings.report.study.foretelling import LATER, beginning_later, foretelling
from headcount.findings.report.study.intervals import (
    SMALL,
    above,
    beyond_chance,
    listed,
    mean_of,
    with_interval,
)
from headcount.findings.report.study.kept import Kept
from headcount.findings.results import BASE
from headcount.findings.tables import NONE, p_value

EXPERIMENT = "collapse"
SLOW = "collapse_slow"
_SHARE = 1 / 8  # of the heads, the paper's 18 of 144
_SHOWN = 5  # places of locked heads that are named; of more layers the last is all others


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
    foretold = foretelling(kept, EXPERIMENT, free["run"].tolist())
    later = beginning_later(kept)
    told = [locking_words(kept, EXPERIMENT), harm_words(kept, EXPERIMENT), place, _hold(held)]
    told += [*foretold.get("answer", []), *later.get("answer", []), _slower(kept)]
    return {
        "experiments": [EXPERIMENT, *filter(kept.begun, (LATER, SLOW))],
        "trainings": len(trained),
        "seeds": ", ".join(map(str, sorted(trained["seed"].astype(int).unique()))),
        "rows": locked_rows(kept, EXPERIMENT),
        "held": [_held(row) for row in held.dropna(subset="held_p").to_dict("records")],
        "foretold": foretold,
        "later": later,
        "slower": locked_rows(kept, SLOW) if kept.begun(SLOW) else [],
        "picture": kept.picture(EXPERIMENT, "headmask_locked_fig"),
        "short": [short_locking(kept, EXPERIMENT)],
        "answer": list(filter(None, [*told, collapsed_words(kept, EXPERIMENT)])),
    }


def _slower(kept: Kept) -> str:
    """What Impt-N of the paper locks in at the lower rate; empty while none is kept."""
    if not kept.begun(SLOW):
        return ""
    return f"At a peak rate of {kept.settings(SLOW).train.peak_lr:g}: {locking_words(kept, SLOW)}"


def locked_rows(kept: Kept, experiment: str) -> list[dict[str, str]]:
    """What the page says of each run that masks heads and holds none, over its seeds."""
    table = kept.table(experiment, "headmask_locked")
    heads = kept.table(experiment, "headmask_locked_heads")
    trained = table.dropna(subset="seed")
    over = table[table["seed"].isna() & (table["n"] > 0) & (table["held"] == 0)]
    bleu = _bleu_to_baseline(kept, experiment)
    rows = [
        _row(row, _places(trained, [row["run"]]), heads[heads["run"] == row["run"]])
        | {"bleu": bleu.get(row["run"], NONE)}
        for row in over.to_dict("records")
    ]
    return marked(kept, experiment, rows)


def _bleu_to_baseline(kept: Kept, experiment: str) -> dict[str, str]:
    """By run, what it changes BLEU by to the baseline of the seed, a mean over shared test sets.

    Empty without the table.
    """
    if not kept.has(experiment, "bleu"):
        return {}
    scores = kept.table(experiment, "bleu")
    scores = scores[scores["metric"] == "bleu"]
    found = scores.pivot_table(index=["seed", "pair", "test_set"], columns="run", values="score")
    if BASE not in found:
        return {}
    changes = found.sub(found[BASE], axis=0).groupby("seed").mean().dropna(axis=1, how="all")
    return {run: with_interval(mean_of(changes[run].dropna()), 1) for run in changes}


def _over_seeds(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of runs of importance over their seeds."""
    return table[table["seed"].isna() & table["run"].str.startswith("impt")]


def short_locking(kept: Kept, experiment: str) -> str:
    """What Impt-N of the paper locks in, and whether that harms, in a sentence."""
    row = _as_in_paper(kept, experiment)
    if row is None:
        return "Impt-N as the paper has it has fewer than two trainings."
    slope = _bounds(row, "locked_slope")
    harm = f"; that they harm, to first order: {above(slope['low'], slope['high'])}, mean slope "
    harm += f"{with_interval(slope, 2)} nats"
    return f"{_how_many(kept, experiment, row)}{harm * bool(row['locked_ever'])}."


def locking_words(kept: Kept, experiment: str) -> str:
    """What Impt-N of the paper locks in, where, and how many of these heads harm."""
    row = _as_in_paper(kept, experiment)
    if row is None or not row["locked_ever"]:
        return short_locking(kept, experiment)
    heads = kept.table(experiment, "headmask_locked_heads")
    heads, slope = heads[heads["run"] == row["run"]], _bounds(row, "locked_slope")
    return (
        f"{_how_many(kept, experiment, row)}, {row['locked_at_end']:.1f} of them at the end (in "
        f"all {_layers(heads)}); their mean slope while they were is {with_interval(slope, 2)} "
        f"nats, above 0 in {_harmful(heads)} (that the mean is, harm to first order: "
        f"{above(slope['low'], slope['high'])})."
    )


def _as_in_paper(kept: Kept, experiment: str) -> pd.Series | None:
    """The row of Impt-N as the paper has it, with its share of heads or the nearest there is."""
    over = _over_seeds(kept.table(experiment, "headmask_locked"))
    plain = over[[bool(re.fullmatch(r"impt-\d+", run)) for run in over["run"]]]
    if plain.empty:
        return None
    return plain.loc[(plain["n"] / plain["heads"] - _SHARE).abs().idxmin()]


def _how_many(kept: Kept, experiment: str, row: pd.Series) -> str:
    """How many trainings of a run locked heads in, and how many heads."""
    return (
        f"{row['seeds_locked']:.0f} of {row['seeds']:.0f} trainings of "
        f"{named(kept, experiment, row['run'])} locked heads in, "
        f"{with_interval(_bounds(row, 'locked_ever'), 1, '')} on average"
    )


def _layers(heads: pd.DataFrame) -> str:
    """Locked heads of one run, by kind and layer, those of the most first; of few layers each."""
    counts = heads.groupby(["kind", "layer"]).size().sort_values(ascending=False, kind="stable")
    shown = counts if len(counts) <= _SHOWN else counts[: _SHOWN - 1]
    told = [f"{count} {SHORT[kind]} layer {layer:.0f}" for (kind, layer), count in shown.items()]
    if len(shown) < len(counts):
        told.append(f"{counts.sum() - shown.sum()} in {len(counts) - len(shown)} other layers")
    return ", ".join(told)


def _harmful(heads: pd.DataFrame) -> str:
    """How many of locked heads had a mean slope above 0 while they were."""
    known = heads.dropna(subset="slope_mean")
    return f"{(known['slope_mean'] > 0).sum()} of {len(known)}"


def harm_words(kept: Kept, experiment: str) -> str:
    """What masking the heads that a model calls most important does to it, by run; empty without
    the table. Above 0 the model is better without them.
    """
    if not kept.has(experiment, "headmask_collapse"):
        return ""
    table = kept.table(experiment, "headmask_collapse").dropna(subset="top_group_delta")
    told = [
        f"`{run}` {with_interval(mean_of(of_run['top_group_delta']), 1)}"
        for run, of_run in table.groupby("run", sort=False)
        if re.fullmatch(r"baseline|(random|impt)-\d+", run)
    ]
    words = "Masking the most important group of heads of the trained model changes BLEU by"
    return f"{words}: {', '.join(told)}." if told else ""


def _bounds(row: pd.Series, column: str) -> dict[str, float]:
    return {"value": row[column], "low": row[f"{column}_low"], "high": row[f"{column}_high"]}


def _places(trained: pd.DataFrame, runs: Sequence[str]) -> dict[str, float]:
    """Of the heads that trainings of these runs locked in, the share of the decoder's first
    self-attention, and the share by chance; empty where none may be of it.
    """
    known = trained[trained["run"].isin(runs)].dropna(subset="place_both")
    both, chance, ever = known[["place_both", "place_expected", "locked_ever"]].sum()
    return {"both": both / ever, "expected": chance / ever} if ever else {}


def _row(row: dict[str, Any], places: dict[str, float], heads: pd.DataFrame) -> dict[str, str]:
    """What the page says of the trainings of one run, and of the heads that they locked in."""
    cells = {
        "run": row["run"],
        "seeds": f"{row['seeds_locked']:.0f} of {row['seeds']:.0f}",
        "heads": f"{row['locked_ever']:.1f} / {row['locked_at_end']:.1f}",
    }
    if not row["locked_ever"]:
        lacking = ("when", "layers", "harmful", "ratio", "slope", "place")
        return cells | dict.fromkeys(lacking, NONE)
    ratio = f"{_two(row['locked_slope_ratio'])} / {_two(row['others_slope_ratio'])}"
    by_sentences = RunSettings.model_validate(row["run"]).unit == "sentence"
    where = NONE
    if places:
        where = f"{100 * places['both']:.0f} % (by chance {100 * places['expected']:.0f} %; "
        where += f"p {_p(row['place_p'])})"
    return cells | {
        "when": f"{row['locked_from']:.0f} / {row['locked_longest']:.0f}",
        "layers": _layers(heads),
        "harmful": _harmful(heads),
        "ratio": ratio if by_sentences else NONE,
        "slope": f"{row['locked_slope']:+z.2f} / {row['others_slope']:+z.2f}",
        "place": where,
    }


def _two(number: float) -> str:
    return NONE if pd.isna(number) else f"{number:.2f}"


def _p(p: float) -> str:
    return NONE if pd.isna(p) else p_value(p)


def _place(free: pd.DataFrame, places: dict[str, float]) -> str:
    """Whether locked heads are of the decoder's first self-attention, in the runs that say."""
    if not places:
        return ""
    return (
        "Of the heads locked in by the runs that may mask the decoder's first self-attention, "
        f"{100 * places['both']:.0f} % are of it. {place_words(free)} These runs have the initial "
        "weights and data of each seed in common and do not confirm one another."
    )


def place_words(free: pd.DataFrame) -> str:
    """In which runs more heads of the decoder's first self-attention are locked in than by chance.

    `free` has a run over its seeds a row. P is corrected for the number of runs.
    """
    known = free.dropna(subset="place_p")
    if known.empty:
        return ""
    found = beyond_chance(known["place_p"])
    others = f", not in {listed(known['run'][~found])}" if not found.all() else ""
    return (
        "Heads of the decoder's first self-attention are locked in more often than by chance in "
        f"{found.sum()} of {len(known)} runs (p < {SMALL} after correction for their number"
        f"{others}); those of other layers may be, too."
    )


def _held(row: dict[str, Any]) -> dict[str, str]:
    return {
        "updates": f"{row['held']:.0f}",
        "both": f"{row['held_both']:.1f} of {row['n']:.0f}",
        "chance": f"{row['held_expected']:.1f}",
        "p": _p(row["held_p"]),
    }


def _hold(held: pd.DataFrame) -> str:
    """Whether heads that are held masked at first stay so."""
    known = held.dropna(subset="held_p")
    longer = known[beyond_chance(known["held_p"])]["held"]
    if known.empty:
        return "No run says what became of heads that were held masked."
    if longer.empty:
        return (
            "Heads that are held masked from the first update on are not seen to stay masked more "
            f"often than chance gives (p at least {SMALL} after correction for {len(known)} holds "
            "that tell); of so few heads only a large effect would show."
        )
    return (
        "Heads that are held masked stay so more often than chance gives after holds of "
        f"{', '.join(f'{updates:.0f}' for updates in longer)} updates."
    )
