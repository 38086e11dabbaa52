"""How many heads can go, in which order: BLEU by steps of pruning, and areas under the curves."""

from functools import cache
from math import ceil

import numpy as np
import pandas as pd

from headcount.findings import exhibits
from headcount.findings.kinds import kind_words
from headcount.findings.michel.measured import (
    BLEU,
    SCORES,
    Metric,
    count_units,
    describe_ranked,
)
from headcount.findings.published import michel
from headcount.findings.published.numbers import with_printed
from headcount.findings.results import BASE, KEYS, Results, gather
from headcount.findings.setting import MASKED_OR_GATED, of_one_training
from headcount.findings.tables import (
    NONE,
    Table,
    fill_empty,
    interval,
    mean_sd,
    p_value,
    run_cells,
    with_bounds,
)

LOSS = 0.05
"""Of p, below which a step's loss is called significant."""

KEEPING = 0.95  # of the score with all heads
PROFILE = ["test_set", "scope", "order", "index", "draw", "heads_masked", *SCORES]
CURVE = [*KEYS, "test_set", "scope", "order", "draw"]
POINTS = [*CURVE, "index", "percent", "heads_masked", *SCORES, "source"]
_OF_STEP = {"at": "heads_masked", "percent": "percent", "delta": "delta", "low": "delta_low"}
_OF_STEP |= {"high": "delta_high", "p": "p"}
COLUMNS = [*CURVE, "heads", "step", *(f"holds_{name}" for name in _OF_STEP)]
COLUMNS += [*(f"falls_{name}" for name in _OF_STEP), "keeps_percent"]

_ORDERS = {
    "importance": "importance, the least important first",
    "importance_raw": "importance raw, the same without dividing by the norm of each layer and "
    "kind",
    "importance_signed": "importance signed, the same without absolute values, harmful heads first",
    "importance_mean": "importance mean, heads in that order that give their mean output in place "
    "of zeros",
    "fisher": "fisher, by Fisher information",
    "fisher_rearranged": "fisher rearranged, the same with heads exchanged within layers",
    "integrated_gradients": "integrated gradients, harmful heads first",
    "shapley": "shapley, by Shapley values, harmful heads first",
    "mean_ablation": "mean ablation, by how much the loss rises where the head alone gives its "
    "mean",
    "output_norm": "output norm, by the length of what the head adds",
    "single": "single, by the {score} change on dev without the head alone",
    "random": "random",
    "one_per_layer": "one per layer, only the most important head of each layer and kind left",
}
_KINDS_ALONE = "Of kinds alone, the others stay whole; shares are those of the scope's heads."
_DRAWN = "Of random orders, means of what the draws give."


@exhibits.table("michel_pruning", needs=("profiles", "ablated"))
def pruning(results: Results) -> Table:
    """How many heads can be pruned."""
    notes = (
        MASKED_OR_GATED,
        f"Rows whose source is paper: {michel.SOURCE}, Figures 3, 4 and 6d, digitised; it says "
        "that 20 % can go without a noticeable loss.",
        michel.BESIDE_OURS,
        *describe_ranked(results),
    )
    counts = count_units(results.files("ablation_facts"), BLEU)
    ours = judged_curves(measured_points(results)).merge(counts, "left")
    return pruning_table(ours, judged_curves(printed_points()), BLEU, notes)


def pruning_table(
    ours: pd.DataFrame, printed: pd.DataFrame, metric: Metric, notes: tuple[str, ...]
) -> Table:
    """How far each order goes, then a paper's; `notes` come last.

    Both have rows of `judged_curves`, ours with the column of `count_units`.
    """
    tidy = with_printed(ours, printed)
    orders = set(tidy["order"])
    listed = "; ".join(words for order, words in _ORDERS.items() if order in orders)
    kinds = _KINDS_ALONE if set(tidy["scope"]) != {"all"} else ""
    return Table(
        tidy,
        _summary(tidy, metric),
        "Largest share of heads that can be pruned, nothing retrained, without a significant loss "
        f"of {metric.word}, by the order in which they go. The larger, the better the order finds "
        "heads that can go.",
        (
            "Without a significant loss: the last step before the first whose loss has p < "
            f"{LOSS} by paired bootstrap, nearly one-sided (tests in fixed order, the smallest "
            "share first, so that none needs a correction); beside it what is lost there, with "
            "its 95 % interval and p. Near the limit one of the two may say a loss and the other "
            f"not; p decides. Not significant is not small: of few {metric.counted} only a large "
            f"loss is significant. Keeps {KEEPING:.0%}: the largest share up to which every step "
            f"keeps as much of {metric.word}.",
            f"Orders: {listed.format(score=metric.word)}.",
            kinds,
            _DRAWN if "random" in orders else "",
            of_one_training(f"test {metric.counted}"),
            *notes,
        ),
    )


@cache
def measured_points(results: Results) -> pd.DataFrame:
    """The points of pruning_profile.csv of runs; see `profile_points`."""
    return profile_points(gather(results.files("profiles"), PROFILE))


def profile_points(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of pruning_profile.csv with the columns of `POINTS`.

    `percent`: that of the step, 0 to 100; `heads_masked` are as many of the scope's heads or up to
    one more. Of one_per_layer, which has no steps, the share that is masked.
    """
    in_scope = table.groupby([*KEYS, "scope"])["heads_masked"].transform("max")
    steps = table.groupby([*KEYS, "scope", "order"])["index"].transform("max")
    alone = table["order"] == "one_per_layer"
    masked = 100 * table["heads_masked"] / in_scope
    percent = masked.where(alone, 100 * table["index"] / steps)
    return table.assign(percent=percent, draw=fill_empty(table["draw"]), source="ours")[POINTS]


def printed_points() -> pd.DataFrame:
    """The paper's curves, as far as `POINTS` knows them."""
    table = michel.curves().rename(columns={"value": "bleu"})
    tests = table["pair"].map({michel.PAIR: "newstest2013"}).fillna("")
    table = table.assign(run=BASE, test_set=tests, source="paper")
    return table.reindex(columns=POINTS, fill_value="").astype(object)


def judged_curves(points: pd.DataFrame) -> pd.DataFrame:
    """One curve a row: columns of `COLUMNS`.

    `holds_*`: the last step before the first significant loss, heads gone and their percentage of
    the scope, with its own difference, interval and p; `falls_*` that first loss; empty where there
    is none and where no p is known. `keeps_percent`: up to it every step keeps `KEEPING`.
    `step`: percentage of one step. Order one_per_layer has its one point in `falls_*` or `holds_*`.
    """
    in_scope = points.groupby([*KEYS, "scope"])["heads_masked"].max()
    rows = []
    for key, found in points.groupby(CURVE, sort=False):
        ordered = found.sort_values("percent").to_dict("records")
        row = dict(zip(CURVE, key, strict=True)) | _judged(ordered)
        row["heads"] = in_scope[*key[:3], row["scope"]]
        if len(ordered) > 1:
            row["step"] = ordered[1]["percent"] - ordered[0]["percent"]
            row["keeps_percent"] = _keeps(ordered)
        rows.append(row)
    return fill_empty(pd.DataFrame(rows, columns=COLUMNS))


def _judged(ordered: list[dict]) -> dict:
    """The last step that holds and the first that falls."""
    found = {}
    for row in ordered:
        if row["p"] == "":
            continue
        name = "falls" if row["delta"] < 0 and row["p"] < LOSS else "holds"
        found |= {f"{name}_{short}": row[column] for short, column in _OF_STEP.items()}
        if name == "falls":
            break
    return found


def _keeps(ordered: list[dict]) -> float:
    """The largest percentage up to which every step keeps `KEEPING`."""
    whole, kept = ordered[0]["bleu"], 0.0
    for row in ordered:
        if row["bleu"] < KEEPING * whole:
            break
        kept = row["percent"]
    return kept


def _summary(table: pd.DataFrame, metric: Metric) -> pd.DataFrame:
    """The table as people read it: a row per order and scope, random draws in one."""
    rows = []
    keys = [*KEYS, "test_set", metric.counted, "scope", "order", "source"]
    for (*run, test, count, scope, order, source), found in table.groupby(keys, sort=False):
        units = f"{count} {metric.counted}" if count != "" else ""
        row = run_cells(*run) | {"test set": ", ".join(filter(None, (test, units))) or NONE}
        row |= {"scope": kind_words(scope), "order": order.replace("_", " ")}
        row["without a significant loss"] = _share(found["holds_percent"], found["holds_at"])
        row["change there"] = _change(found, "holds")
        row["first loss at"] = _share(found["falls_percent"], found["falls_at"])
        row["change at it"] = _change(found, "falls")
        row[f"keeps {KEEPING:.0%} up to"] = _share(found["keeps_percent"])
        rows.append(row | {"source": source})
    return pd.DataFrame(rows)


def _change(found: pd.DataFrame, side: str) -> str:
    """What the score loses at a step, with interval and p; a dash for several curves in one row."""
    delta, low, high, p = found[[f"{side}_{name}" for name in ("delta", "low", "high", "p")]].iloc[
        0
    ]
    if len(found) > 1 or delta == "":
        return NONE
    return f"{delta:+z.2f} ({interval([low], [high])}), p {p_value(p)}"


def _share(percents: pd.Series, heads: pd.Series | None = None) -> str:
    """Mean percentage, and how many heads that is where there is one curve and they are given."""
    known = pd.to_numeric(percents[percents != ""])
    if known.empty:
        return NONE
    told = heads is not None and len(percents) == 1
    count = f" ({ceil(heads.iloc[0])})" if told else ""
    return f"{known.mean():.0f} %{count}"


AREAS = ["test_set", "scope", "order", "area", "low", "high", "against", "delta", "delta_low"]
AREAS += ["delta_high", "p"]


@exhibits.table("michel_areas", needs=("areas", "ablated"))
def areas(results: Results) -> Table:
    """Mean BLEU over the steps of pruning."""
    notes = (
        f"Rows whose source is paper: {michel.SOURCE}, the curves of Figures 3, 4 and 6d.",
        michel.BESIDE_OURS,
        *describe_ranked(results),
    )
    return areas_table(gather(results.files("areas"), AREAS), _printed_areas(), BLEU, notes)


def areas_table(
    measured: pd.DataFrame, printed: pd.DataFrame, metric: Metric, notes: tuple[str, ...]
) -> Table:
    """Rows of pruning_profile_areas.csv, then a paper's; `notes` come last.

    Cells are empty where a curve was compared with no other.
    """
    tidy = with_printed(fill_empty(measured[[*KEYS, *AREAS]]), printed)
    kinds = set(tidy["scope"]) != {"all"}
    needed = ", or the less a kind needs its heads" if kinds else ""
    against = "; of kinds, to encoder–decoder attention" if kinds else ""
    return Table(
        tidy,
        pd.DataFrame([_area_cells(row, metric) for row in tidy.to_dict("records")]),
        f"Mean {metric.word} over the steps of pruning from no head to all, which weigh alike: the "
        f"larger, the better the order finds the heads that can go{needed}.",
        (
            "Differences, with 95 % interval and p by paired bootstrap, nearly one-sided, are to "
            f"the order by importance over all heads{against}. Of random orders the mean; "
            f"resamples draw orders as well as {metric.counted}, and few orders make a rough "
            "interval.",
            of_one_training(f"test {metric.counted}"),
            *notes,
        ),
    )


def _printed_areas() -> pd.DataFrame:
    """The paper's rows of `areas_table`: means over its digitised curves, by trapezoids."""
    rows = []
    for key, found in printed_points().groupby(CURVE, sort=False):
        ordered = found.sort_values("percent").astype({"percent": float, "bleu": float})
        mean = np.trapezoid(ordered["bleu"], ordered["percent"]) / np.ptp(ordered["percent"])
        rows.append(dict(zip(CURVE, key, strict=True)) | {"area": float(mean)})
    return pd.DataFrame(rows)


def _area_cells(row: dict, metric: Metric) -> dict[str, str]:
    """One row as people read it."""
    return (
        run_cells(*(row[key] for key in KEYS))
        | {"test set": row["test_set"] or NONE, "scope": kind_words(row["scope"])}
        | {"order": row["order"]}
        | {f"mean {metric.word}": with_bounds(row["area"], row["low"], row["high"])}
        | {"against": ", ".join(map(kind_words, row["against"].split("/"))) or NONE}
        | {"difference": mean_sd([row["delta"]], "+")}
        | {"95 % interval": interval([row["delta_low"]], [row["delta_high"]])}
        | {"p": p_value(row["p"]), "source": row["source"]}
    )
