"""How many heads can go, in which order: BLEU by steps of pruning, and areas under the curves."""

from collections.abc import Collection
from math import ceil

import numpy as np
import pandas as pd

from headcount.findings.cells import NONE, p_value
from headcount.findings.michel.metric import Metric
from headcount.findings.published import michel
from headcount.findings.published.numbers import beside_ours
from headcount.findings.run_tables import BASE, KEYS
from headcount.findings.setting import of_one_training

LEVEL = 0.05
"""Of p, below which a step's loss is called significant."""

KEEPING = 0.95  # of the score with all heads
_SCORES = ["heads_masked", "bleu", "delta", "delta_low", "delta_high", "p"]
READ = ["test_set", "scope", "order", "index", "draw", *_SCORES]
_CURVE = [*KEYS, "test_set", "scope", "order", "draw"]
POINTS = [*_CURVE, "index", "percent", *_SCORES, "source"]
COLUMNS = [*_CURVE, "heads", "step", "holds_at", "holds_percent", "holds_delta", "holds_p"]
COLUMNS += ["falls_at", "falls_percent", "falls_delta", "falls_p", "keeps_percent", "source"]
AREAS = ["test_set", "scope", "order", "area", "low", "high", "against", "delta", "delta_low"]
AREAS += ["delta_high", "p"]
AREA_COLUMNS = [*KEYS, *AREAS, "source"]

ORDERS = {
    "importance": "importance, the least important first",
    "importance_raw": "importance raw, the same without dividing by the norm of each layer and "
    "kind",
    "single": "single, by the {score} change on dev without the head alone",
    "random": "random",
    "one_per_layer": "one per layer, only the most important head of each layer and kind left",
}
_KINDS_ALONE = " Of kinds alone, the others stay whole; shares are those of the scope's heads."
_DRAWN = " Of random orders, means of what the draws give."
PRINTED = (
    f"Rows whose source is paper: {michel.source()}, Figures 3, 4 and 6d, digitised; it says that "
    f"20 % can go without a noticeable loss. {beside_ours(michel.metric())}"
)


def caption(metric: Metric, orders: Collection[str], kinds: bool) -> str:
    """What our rows say, of these orders; `kinds`: heads of one kind are pruned alone, too."""
    listed = "; ".join(words for order, words in ORDERS.items() if order in orders)
    return (
        "Largest share of heads that can be pruned, nothing retrained, without a significant loss "
        f"of {metric.word}: the last step before the first whose loss has p < {LEVEL} by paired "
        "bootstrap (tests in fixed order, the smallest share first, so that none needs a "
        "correction). Beside it the largest share up to which every step keeps "
        f"{KEEPING:.0%} of {metric.word}. Orders: {listed.format(score=metric.word)}."
        f"{_KINDS_ALONE if kinds else ''}{_DRAWN if 'random' in orders else ''} "
        f"{of_one_training(f'test {metric.counted}')}"
    )


def areas_caption(metric: Metric, kinds: bool) -> str:
    """What the table of areas says; `kinds`: heads of one kind are pruned alone, too."""
    needed = ", or the less a kind needs its heads" if kinds else ""
    against = "; of kinds, to encoder-decoder attention" if kinds else ""
    return (
        f"Mean {metric.word} over shares of heads pruned from none to all: the larger, the better "
        f"the order finds the heads that can go{needed}. Differences, with 95 % interval and p by "
        f"paired bootstrap, are to the order by importance over all heads{against}. Of random "
        f"orders the mean; resamples draw orders as well as {metric.counted}, and few orders make "
        f"a rough interval. {of_one_training(f'test {metric.counted}')}"
    )


PRINTED_AREAS = (
    f"Rows whose source is paper: {michel.source()}, the curves of Figures 3, 4 and 6d. "
    f"{beside_ours(michel.metric())}"
)


def profile_points(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of pruning_profile.csv with the columns of `POINTS`.

    `percent`: share of the scope's heads that are masked, 0 to 100.
    """
    in_scope = table.groupby([*KEYS, "scope"])["heads_masked"].transform("max")
    alone = table["order"] == "one_per_layer"
    table = table.assign(percent=100 * table["heads_masked"] / in_scope)
    table["draw"] = table["draw"].astype(object).where(table["draw"].notna(), "")
    table.loc[~alone, "percent"] = (
        100 * table["index"] / table.groupby([*KEYS, "scope", "order"])["index"].transform("max")
    )
    return table.assign(source="ours")[POINTS]


def printed_points() -> pd.DataFrame:
    """The paper's curves, as far as `POINTS` knows them."""
    curves = michel.curves().rename(columns={"value": "bleu"})
    tests = {michel.PAIR: "newstest2013"}
    table = curves.assign(run=BASE, seed="", source="paper", draw="")
    table["test_set"] = [tests.get(pair, "") for pair in table["pair"]]
    return table.reindex(columns=POINTS, fill_value="").astype(object)


def pruning_table(points: pd.DataFrame) -> pd.DataFrame:
    """One curve a row: columns of `COLUMNS`.

    `holds_*`: the last step before the first significant loss, heads gone and their percentage of
    the scope, with its own difference and p; `falls_*` that first loss, empty if there is none.
    `keeps_percent`: up to it every step keeps `KEEPING` of the score. `step`: percentage of one
    step. Order one_per_layer has its one point in `falls_*` or `holds_*`.
    """
    in_scope = points.groupby([*KEYS, "scope"])["heads_masked"].max()
    rows = []
    for key, found in points.groupby(_CURVE, sort=False):
        ordered = found.sort_values("percent").to_dict("records")
        row = dict(zip(_CURVE, key, strict=True)) | {"source": "ours"}
        row |= {"heads": in_scope[*key[:3], row["scope"]], "step": _step(ordered)}
        rows.append(row | _judged(ordered) | {"keeps_percent": _keeps(ordered)})
    return _filled(rows)


def printed_pruning() -> pd.DataFrame:
    """The paper's rows of `pruning_table`; it prints no p."""
    rows = []
    for key, found in printed_points().groupby(_CURVE, sort=False):
        ordered = found.sort_values("percent").to_dict("records")
        row = dict(zip(_CURVE, key, strict=True)) | {"source": "paper", "step": _step(ordered)}
        rows.append(row | {"keeps_percent": _keeps(ordered)})
    return _filled(rows)


def _filled(rows: list[dict]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=COLUMNS)
    return table.astype(object).where(table.notna(), "")


def _step(ordered: list[dict]) -> float:
    return ordered[1]["percent"] - ordered[0]["percent"] if len(ordered) > 1 else ""


def _judged(ordered: list[dict]) -> dict:
    """The last step that holds and the first that falls."""
    found = {}
    for row in ordered:
        falls = row["delta"] < 0 and row["p"] < LEVEL
        name = "falls" if falls else "holds"
        found |= {f"{name}_at": row["heads_masked"], f"{name}_percent": row["percent"]}
        found |= {f"{name}_delta": row["delta"], f"{name}_p": row["p"]}
        if falls:
            return found
    return found


def _keeps(ordered: list[dict]) -> float | str:
    """The largest percentage up to which every step keeps `KEEPING`; empty for a point."""
    if len(ordered) < 2:
        return ""
    whole, kept = ordered[0]["bleu"], 0.0
    for row in ordered:
        if row["bleu"] < KEEPING * whole:
            break
        kept = row["percent"]
    return kept


def pruning_summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per order and scope, random draws in one."""
    rows = []
    keys = [*KEYS, "test_set", "scope", "order", "source"]
    for key, found in table.groupby(keys, sort=False):
        pair, run, seed, test, scope, order, source = key
        row = {"pair": pair, "run": run, "seed": str(seed) or NONE, "test set": test or NONE}
        row |= {"scope": scope, "order": order.replace("_", " ")}
        row |= {"without a significant loss": _share(found["holds_percent"], found["holds_at"])}
        one = found.iloc[0] if len(found) == 1 else dict.fromkeys(COLUMNS, "")
        row["first loss at"] = _share(found["falls_percent"], found["falls_at"])
        row["change there"] = NONE if one["falls_delta"] == "" else f"{one['falls_delta']:+z.2f}"
        row["p"] = p_value(one["falls_p"])
        row[f"keeps {KEEPING:.0%} up to"] = _share(found["keeps_percent"], found["keeps_percent"])
        rows.append(row | {"source": source})
    return pd.DataFrame(rows)


def _share(percents: pd.Series, heads: pd.Series) -> str:
    """Mean percentage, and how many heads that is where there is one curve."""
    known = pd.to_numeric(percents[percents != ""])
    if known.empty:
        return NONE
    one = len(percents) == 1 and heads.iloc[0] != percents.iloc[0]
    count = f" ({ceil(heads.iloc[0])})" if one else ""
    return f"{known.mean():.0f} %{count}"


def areas_table(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of pruning_profile_areas.csv: columns of `AREA_COLUMNS`; empty: not compared."""
    cells = table.assign(source="ours")[AREA_COLUMNS].astype(object)
    return cells.where(cells.notna(), "")


def printed_areas() -> pd.DataFrame:
    """The paper's rows of `areas_table`: means over its digitised curves, by trapezoids."""
    rows = []
    for key, found in printed_points().groupby(_CURVE, sort=False):
        ordered = found.sort_values("percent").astype({"percent": float, "bleu": float})
        mean = np.trapezoid(ordered["bleu"], ordered["percent"]) / np.ptp(ordered["percent"])
        rows.append(dict(zip(_CURVE, key, strict=True)) | {"area": float(mean), "source": "paper"})
    return pd.DataFrame(rows).reindex(columns=AREA_COLUMNS, fill_value="").astype(object)


def areas_summary(table: pd.DataFrame, metric: Metric) -> pd.DataFrame:
    """The table as people read it."""
    rows = []
    for row in table.to_dict("records"):
        compared = row["against"] != ""
        bounds = f"{row['delta_low']:+z.2f} to {row['delta_high']:+z.2f}" if compared else NONE
        rows.append(
            {name: str(row[name]) or NONE for name in KEYS}
            | {"test set": row["test_set"] or NONE, "scope": row["scope"], "order": row["order"]}
            | {f"mean {metric.word}": _mean(row)}
            | {"against": row["against"].replace("/", ", ") or NONE}
            | {"difference": f"{row['delta']:+z.2f}" if compared else NONE}
            | {"95 % interval": bounds, "p": p_value(row["p"]), "source": row["source"]}
        )
    return pd.DataFrame(rows)


def _mean(row: dict) -> str:
    bounds = "" if row["low"] == "" else f" ({row['low']:.2f} to {row['high']:.2f})"
    return f"{row['area']:.2f}{bounds}"
