"""When heads become redundant: pruning profiles at points of the training."""

from functools import cache

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headcount.base.errors import UserError
from headcount.findings import exhibits
from headcount.findings.figures import GREY, MOST_LINES, Drawn, panels, shades, start_at_zero
from headcount.findings.headmask.importance import spread
from headcount.findings.michel.curves import PRINTED, finish
from headcount.findings.michel.measured import as_compared, describe_ranked
from headcount.findings.published import michel
from headcount.findings.published.numbers import with_printed
from headcount.findings.results import BASE, HEAD, KEYS, Results, gather
from headcount.findings.setting import of_one_training
from headcount.findings.significance import spearman
from headcount.findings.tables import NONE, Table, fill_empty, mean_sd, run_cells, with_bounds

_KEPT = ["kept", "kept_low", "kept_high"]
POINTS = [*KEYS, "update", "test_set", "index", "percent", "heads_masked", "bleu", *_KEPT]
SHARES = (20, 40, 60)
COLUMNS = [*KEYS, "update", "test_set", "bleu"]
COLUMNS += [f"{name}_{share}" for share in SHARES for name in _KEPT]
COLUMNS += ["r_squared", "end_mass", "cv", "spearman_with_last", "spearman_raw_with_last"]
FLOOR = 2.0
"""BLEU of a checkpoint below which shares of it mean nothing."""

_ENDS = 15  # percentage points from 0 and 100


@exhibits.table("michel_training", needs=("training", "training_heads", "ablated"))
def training(results: Results) -> Table:
    """Heads pruned at points of the training."""
    names = {"pair": michel.SMALL_PAIR, "run": BASE}
    epochs = _printed_points().groupby("epoch")
    paper = [names | {"update": f"epoch {epoch}"} | profile_cells(rows) for epoch, rows in epochs]
    tidy = with_printed(_checkpoints(results), pd.DataFrame(paper))
    return Table(
        tidy,
        pd.DataFrame([_shown(row) for row in tidy.to_dict("records")]),
        "The pruning profile at points of the training: percent of that checkpoint's BLEU that is "
        "kept when 20, 40 and 60 % of its heads, the least important ones, are pruned. It rises "
        "where training makes some heads matter more than others.",
        (
            "Kept: read between steps in a straight line, with 95 % intervals by paired "
            "bootstrap; R²: of a straight line through the profile from no head to all, near 1 "
            "where all heads matter alike; end mass, the share of the points between whose value "
            f"is within {_ENDS} points of 100 or 0 %; coefficient of variation of the importance "
            "of all heads, which ranks them, and its rank correlation with that at the last of "
            "these updates; raw: of importance as it is measured, which tells layers apart as "
            f"well. Below a BLEU of {FLOOR:.0f} a checkpoint has no profile.",
            of_one_training("test sentences"),
            f"Rows whose source is paper: {michel.SOURCE}, Figure 5 (IWSLT14 De-En, epochs in "
            "place of updates; all heads pruned counted as 0).",
            michel.BESIDE_OURS,
            *describe_ranked(results),
        ),
    )


@cache
def training_points(results: Results) -> pd.DataFrame:
    """Rows of training_profile.csv: columns of `POINTS`.

    `percent` of heads pruned; `kept`: percent of that checkpoint's BLEU with all its heads, between
    `kept_low` and `kept_high` by bootstrap of the difference; empty where that BLEU is below
    `FLOOR`.
    """
    columns = ["update", "test_set", "index", "heads_masked", "bleu", "delta_low", "delta_high"]
    table = gather(results.files("training"), columns)
    groups = table.groupby([*KEYS, "update"], sort=False)
    whole = groups["bleu"].transform("first")
    table["percent"] = 100 * table["index"] / groups["index"].transform("max")
    bounds = (whole + table[name] for name in ("delta_low", "delta_high"))
    for name, bleu in zip(_KEPT, (table["bleu"], *bounds), strict=True):
        table[name] = fill_empty(100 * bleu.clip(lower=0) / whole.where(whole >= FLOOR))
    return table[POINTS]


def _checkpoints(results: Results) -> pd.DataFrame:
    """One checkpoint a row: columns of `COLUMNS`; empty cells: what is not known.

    Raises UserError for a checkpoint without importance.
    """
    points = training_points(results)
    columns = ["update", *HEAD, "statistic", "value"]
    importance = gather(results.files("training_heads"), columns)
    importance["compared"] = as_compared(importance, [*KEYS, "update"], results)
    both = importance.groupby([*KEYS, "update"])[["compared", "value"]]
    by_checkpoint = {key: found.to_numpy().T for key, found in both}
    lasts = points.groupby(KEYS)["update"].max()
    rows = []
    for (*run, update), found in points.groupby([*KEYS, "update"], sort=False):
        if (*run, update) not in by_checkpoint:
            raise UserError(
                f"training_profile_heads.csv of {tuple(run)}: expected importance at update "
                f"{update}, found none; run scripts/training_profile.py again"
            )
        now, last = (by_checkpoint[*run, at] for at in (update, lasts[*run]))
        row = found.iloc[0][[*KEYS, "update", "test_set", "bleu"]].to_dict() | profile_cells(found)
        names = ("spearman_with_last", "spearman_raw_with_last")
        row |= dict(zip(names, map(spearman, now, last), strict=True))
        rows.append(row | {"cv": spread(now[0]).cv})
    return fill_empty(pd.DataFrame(rows, columns=COLUMNS))


def _printed_points() -> pd.DataFrame:
    """The paper's Figure 5: epoch, percent, kept; all heads pruned counted as 0."""
    printed = michel.table("figure5").rename(columns={"value": "kept"})
    epochs = pd.DataFrame({"epoch": printed["epoch"].unique()})
    ends = [epochs.assign(percent=percent, kept=100.0 - percent) for percent in (0, 100)]
    return pd.concat([printed, *ends]).sort_values(["epoch", "percent"])


def profile_cells(found: pd.DataFrame) -> dict[str, float]:
    """Statistics of one profile, with its intervals if known; nothing if there is no profile."""
    if (found["kept"] == "").any():
        return {}
    numbers = {name: found[name].to_numpy(float) for name in ("percent", *_KEPT) if name in found}
    percent, kept = numbers.pop("percent"), numbers["kept"]
    cells = {
        f"{name}_{share}": float(np.interp(share, percent, values))
        for share in SHARES
        for name, values in numbers.items()
    }
    line = np.polyval(np.polyfit(percent, kept, 1), percent)
    residual, total = ((kept - line) ** 2).sum(), ((kept - kept.mean()) ** 2).sum()
    cells["r_squared"] = float(1 - residual / total) if total else 1.0
    inner = kept[1:-1]
    if len(inner):
        cells["end_mass"] = float(((abs(inner - 100) <= _ENDS) | (abs(inner) <= _ENDS)).mean())
    return cells


def _shown(row: dict) -> dict[str, str]:
    """One checkpoint as people read it."""
    shown = run_cells(*(row[key] for key in KEYS))
    shown |= {"update": str(row["update"]), "test set": row["test_set"] or NONE}
    shown["BLEU"] = mean_sd([row["bleu"]])
    for share in SHARES:
        kept = (row[f"{name}_{share}"] for name in _KEPT)
        shown[f"kept at {share} %"] = with_bounds(*kept, digits=0, unit=" %")
    names = {"r_squared": "R² of a line", "end_mass": "end mass", "cv": "cv of importance"}
    names |= {"spearman_with_last": "rank correlation with the last"}
    names |= {"spearman_raw_with_last": "raw rank correlation with the last"}
    shown |= {words: mean_sd([row[name]]) for name, words in names.items()}
    return shown | {"source": row["source"]}


@exhibits.figure("michel_training", needs=("training", "ablated"), beside="michel_training")
def training_figure(results: Results) -> Drawn:
    """Figure 5: heads pruned at points of the training."""
    points = training_points(results)
    return Drawn(
        _draw(points),
        points,
        "Percent of a checkpoint's own BLEU that is kept as more and more of its heads are "
        "pruned, by its own importance, at points of the training. Dotted: what equally important "
        "heads would give.",
        (
            "Bands: bootstrap, 95 %, of the difference to all heads.",
            of_one_training("test sentences"),
            michel.BESIDE_OURS,
            f"{PRINTED} 5. At most {MOST_LINES} points of the training are drawn.",
            *describe_ranked(results),
        ),
    )


def _draw(points: pd.DataFrame) -> Figure:
    """A panel per model, and the paper's figure 5: percent of a checkpoint's BLEU that is kept.

    Of more checkpoints than can be told apart some are drawn, as evenly as can be.
    """
    known = points[points["kept"] != ""]
    tasks = [(*task, "update") for task in known.groupby([*KEYS, "test_set"], sort=False)]
    tasks.append(((michel.SMALL_PAIR, "paper", "", ""), _printed_points(), "epoch"))
    figure, axes = panels(len(tasks), width=4.6, height=3.8, share=True)
    for panel, (task, rows, unit) in zip(axes, tasks, strict=True):
        _by_time(panel, rows, unit)
        finish(panel, task, "heads", "percent of BLEU kept")
    start_at_zero(axes)
    return figure


def _by_time(panel: Axes, rows: pd.DataFrame, unit: str) -> None:
    """A line per checkpoint, dark ones early, ours with their intervals; equal heads' line."""
    times = sorted(rows[unit].unique())
    places = np.linspace(0, len(times) - 1, min(len(times), MOST_LINES)).round().astype(int)
    panel.plot([0, 100], [100, 0], ":", color=GREY, linewidth=1, zorder=0)
    for place, colour in zip(places, shades(len(places)), strict=True):
        when = times[place]
        curve, label = rows[rows[unit] == when], f"{unit} {when}"
        if "kept_low" in curve:
            bounds = (curve[name].astype(float) for name in ("kept_low", "kept_high"))
            panel.fill_between(curve["percent"], *bounds, color=colour, alpha=0.15, linewidth=0)
        panel.plot(curve["percent"], curve["kept"].astype(float), color=colour, label=label)
    panel.legend(fontsize="small", frameon=False, loc="lower left")
