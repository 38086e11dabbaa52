"""HeadMask's Tables 5 and 6: how unequal the heads are, by training method."""

from math import isfinite, nan, sqrt
from typing import NamedTuple

import numpy as np
import pandas as pd

from headcount.base.errors import UserError
from headcount.findings import exhibits
from headcount.findings.cells import NONE
from headcount.findings.headmask.importance import describe_measured, of_heads, read_importance
from headcount.findings.published import headmask
from headcount.findings.results import Results
from headcount.findings.run_tables import BASE, KEYS
from headcount.findings.setting import OVER_SEEDS, importance_unit
from headcount.findings.tables import Table

_NAMES = {5: "variance", 6: "mean"}
_PAPER_HEADS = 144
_PLUS = ["ratio_to_baseline", "cv", "gini", "max_over_mean", "heads", "source"]


class Spread(NamedTuple):
    """Mean, variance, and measures without a unit: the larger, the less equal the heads.

    The latter are NaN for importances with a sign, if one is below 0.
    """

    mean: float
    variance: float  # of the heads at hand, not of a population: ddof 0
    cv: float  # standard deviation / mean; 0 when all heads are equal
    gini: float  # 0 when all heads are equal, (n − 1) / n when one head has everything
    max_over_mean: float  # 1 when all heads are equal, n when one head has everything


def spread(importances: np.ndarray) -> Spread:
    """Spread of the importances [heads] of one model.

    Raises UserError if there are none, one is not finite, or all are 0.
    """
    values = np.sort(np.asarray(importances, dtype=np.float64))
    if not values.size or not np.isfinite(values).all() or not values.any():
        raise UserError(
            f"importances: expected finite numbers, not all 0, found "
            f"{values[:3].tolist()}… ({values.size}); make the importance file again"
        )
    mean, variance = float(values.mean()), float(values.var())
    if values[0] < 0:
        return Spread(mean, variance, nan, nan, nan)
    # Gini from sorted values: Σ (2i − n − 1) x_i / (n Σ x), i counted from 1.
    places = 2 * np.arange(1, values.size + 1) - values.size - 1
    gini = float(places @ values / (values.size * values.sum()))
    return Spread(mean, variance, sqrt(variance) / mean, gini, float(values[-1]) / mean)


@exhibits.table("headmask_table5", needs=("importance",))
def table5(results: Results) -> Table:
    """Table 5: variance of the importance of heads."""
    return _inequality(results, 5)


@exhibits.table("headmask_table6", needs=("importance",))
def table6(results: Results) -> Table:
    """Table 6: mean importance of heads."""
    return _inequality(results, 6)


def _inequality(results: Results, number: int) -> Table:
    unit = importance_unit(results.ranking)
    what = {5: f"Variance (ddof 0; square of: {unit})", 6: f"Mean ({unit})"}[number]
    caption = (
        f"{what} of the importance of heads, by training "
        "method. Its scale depends on how the loss is summed, so compare across sources only the "
        "ratio to the baseline of the same seed and the measures without a unit: coefficient of "
        "variation (cv), Gini coefficient, largest over mean; ± is the standard deviation over "
        f"seeds. {OVER_SEEDS} Rows whose source is paper: {headmask.SOURCE}; their cv follows "
        f"from its two tables. {describe_measured(results)}"
    )
    rows = _ours(results.read(read_importance, "importance"), number) + _printed(number)
    tidy = pd.DataFrame(rows, columns=[*KEYS, _NAMES[number], *_PLUS])
    return Table(tidy, _by_run(tidy), caption)


def _ours(importance: pd.DataFrame, number: int) -> list[tuple]:
    """A row per run and seed: keys, the statistic of Table `number`, then `_PLUS`.

    The ratio is to the baseline of the same seed, empty where that is 0 or lacks.
    """
    models = list(of_heads(importance).groupby(KEYS, sort=False)["value"])
    spreads = {key: spread(values) for key, values in models}
    rows = []
    for (pair, run, seed), values in models:
        ours, base = spreads[pair, run, seed], spreads.get((pair, BASE, seed))
        value, least = (getattr(part, _NAMES[number], 0) for part in (ours, base))
        measures = [cell if isfinite(cell) else "" for cell in ours[2:]]
        ratio = value / least if least else ""
        rows.append((pair, run, seed, value, ratio, *measures, len(values), "ours"))
    return rows


def _printed(number: int) -> list[tuple]:
    """The paper's rows; seed and unprinted measures are empty."""
    variance, mean = (headmask.table(table).set_index(["pair", "run"])["value"] for table in (5, 6))
    values = {5: variance, 6: mean}[number]
    rows = []
    for pair, runs in values.groupby("pair", sort=False):
        for (_, run), value in runs.items():
            cv = sqrt(variance[pair, run]) / mean[pair, run]
            ratio = value / values[pair, BASE]
            rows.append((pair, run, "", value, ratio, cv, "", "", _PAPER_HEADS, "paper"))
    return rows


def _by_run(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per pair and run, means over seeds, ± their deviation."""
    rows = []
    for (source, pair, run), seeds in table.groupby(["source", "pair", "run"], sort=False):
        row = {"pair": pair, "run": run}
        for column in table.columns[3:-2]:
            row[column.replace("_", " ")] = _mean_cell(seeds[column])
        rows.append(row | {"heads": str(seeds["heads"].iloc[0]), "source": source})
    return pd.DataFrame(rows)


def _mean_cell(values: pd.Series) -> str:
    """Mean over seeds and, from two on, ± standard deviation (ddof 1); a dash if unknown."""
    known = values[values != ""].astype(float)
    if known.empty:
        return NONE
    return number(known.mean()) + (f" ± {number(known.std())}" if len(known) > 1 else "")


def number(value: float) -> str:
    """A number for people: two decimals from 1 on, three significant digits below."""
    return f"{value:.2f}" if abs(value) >= 1 or value == 0 else f"{value:#.3g}"
