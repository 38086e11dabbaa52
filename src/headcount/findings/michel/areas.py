"""Areas under the curves of pruning: how well an order finds the heads that can go."""

import numpy as np
import pandas as pd

from headcount.findings import exhibits
from headcount.findings.cells import (
    NONE,
    fill_empty,
    interval,
    mean_sd,
    p_value,
    run_cells,
    with_bounds,
)
from headcount.findings.michel.measured import BLEU, Metric, describe_ranked
from headcount.findings.michel.pruning import CURVE, printed_points
from headcount.findings.published import michel
from headcount.findings.published.numbers import with_printed
from headcount.findings.results import Results
from headcount.findings.run_tables import KEYS, gather
from headcount.findings.setting import of_one_training
from headcount.findings.tables import Table

AREAS = ["test_set", "scope", "order", "area", "low", "high", "against", "delta", "delta_low"]
AREAS += ["delta_high", "p"]


@exhibits.table("michel_areas", needs=("areas", "ablated"))
def areas(results: Results) -> Table:
    """Mean BLEU over shares of heads pruned."""
    notes = (
        f"Rows whose source is paper: {michel.SOURCE}, the curves of Figures 3, 4 and 6d. "
        f"{michel.BESIDE_OURS} {describe_ranked(results)}"
    )
    return areas_table(gather(results.files("areas"), AREAS), printed_areas(), BLEU, notes)


def areas_table(measured: pd.DataFrame, printed: pd.DataFrame, metric: Metric, notes: str) -> Table:
    """Rows of pruning_profile_areas.csv, then a paper's; `notes` end the caption.

    Cells are empty where a curve was compared with no other.
    """
    tidy = with_printed(fill_empty(measured[[*KEYS, *AREAS]]), printed)
    kinds = set(tidy["scope"]) != {"all"}
    needed = ", or the less a kind needs its heads" if kinds else ""
    against = "; of kinds, to encoder-decoder attention" if kinds else ""
    return Table(
        tidy,
        pd.DataFrame([_shown(row, metric) for row in tidy.to_dict("records")]),
        f"Mean {metric.word} over shares of heads pruned from none to all: the larger, the better "
        f"the order finds the heads that can go{needed}. Differences, with 95 % interval and p by "
        f"paired bootstrap, are to the order by importance over all heads{against}. Of random "
        f"orders the mean; resamples draw orders as well as {metric.counted}, and few orders make "
        f"a rough interval. {of_one_training(f'test {metric.counted}')} {notes}",
    )


def printed_areas() -> pd.DataFrame:
    """The paper's rows of `areas_table`: means over its digitised curves, by trapezoids."""
    rows = []
    for key, found in printed_points().groupby(CURVE, sort=False):
        ordered = found.sort_values("percent").astype({"percent": float, "bleu": float})
        mean = np.trapezoid(ordered["bleu"], ordered["percent"]) / np.ptp(ordered["percent"])
        rows.append(dict(zip(CURVE, key, strict=True)) | {"area": float(mean)})
    return pd.DataFrame(rows)


def _shown(row: dict, metric: Metric) -> dict[str, str]:
    """One row as people read it."""
    return (
        run_cells(*(row[key] for key in KEYS))
        | {"test set": row["test_set"] or NONE, "scope": row["scope"], "order": row["order"]}
        | {f"mean {metric.word}": with_bounds(row["area"], row["low"], row["high"])}
        | {"against": row["against"].replace("/", ", ") or NONE}
        | {"difference": mean_sd([row["delta"]], "+")}
        | {"95 % interval": interval([row["delta_low"]], [row["delta_high"]])}
        | {"p": p_value(row["p"]), "source": row["source"]}
    )
