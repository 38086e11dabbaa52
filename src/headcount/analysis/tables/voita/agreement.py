"""Agreement of measures of heads: rank correlations between all of them, head by head."""

from itertools import combinations, product

import numpy as np
import pandas as pd

from headcount.analysis.captions import note
from headcount.analysis.frames import HEAD, RUN, Facts, FrameOf
from headcount.analysis.measures import MEASURES, all_measures
from headcount.analysis.stats import bootstrap_correlation, ranks_within, shuffled_p
from headcount.base.addresses import KINDS

_COLUMNS = [*RUN, "kind", "scope", "first", "second", "heads", "spearman", "low", "high", "p"]
_WITHIN = "within layers"
_SHUFFLES = 1999


def agreement(measures: FrameOf[all_measures]) -> pd.DataFrame:
    """Return rank correlations of measures, by model, attention type and scope.

    Heads that lack a measure are left out, and so are pairs of measures of fewer than three heads.
    """
    table = measures.pivot_table("value", [*RUN, *HEAD], "measure", sort=False)
    titles = {name: m.title for name, m in MEASURES.items() if m.compared and name in table}
    rows = []
    for run, model in table.groupby(RUN, sort=False):
        kinds = model.index.get_level_values("kind")
        groups = {"all": model} | {kind: model[kinds == kind] for kind in KINDS}
        for (kind, heads), pair in product(groups.items(), combinations(titles, 2)):
            both = heads[list(pair)].dropna()
            for scope in (_WITHIN, "all heads") if len(both) > 2 else ():
                rows.append((*run, kind, scope, *pair, len(both), *_compare(both, scope)))
    frame = pd.DataFrame(rows, columns=_COLUMNS)
    return frame.assign(_first=frame["first"].map(titles), _second=frame["second"].map(titles))


def _compare(both: pd.DataFrame, scope: str) -> tuple[float, float, float, float]:
    """Return rank correlation, its interval and p, missing if a measure is constant.

    Within layers it is Pearson's correlation of the ranks that heads have in their layers.
    """
    kinds, layers = (both.index.get_level_values(name) for name in ("kind", "layer"))
    blocks = pd.Series(kinds + layers.astype(str) if scope == _WITHIN else "", both.index)
    sides = [ranks_within(both[name], blocks).to_numpy() for name in both]
    if any(np.ptp(side) == 0 for side in sides):
        return (np.nan,) * 4
    rho = float(np.corrcoef(*sides)[0, 1])
    p = shuffled_p(*sides, blocks.to_numpy(str), _SHUFFLES)
    return rho, *bootstrap_correlation(*sides, ranks=scope != _WITHIN), p


@note
def quadrature(more_measures_facts: Facts) -> str:
    """Return how far the sum of integrated gradients is from the loss that all heads take off."""
    sums = [run["integrated_gradients"] for run in more_measures_facts]
    gaps = [abs(s["sum"] / s["loss_taken_off"] - 1) for s in sums if s["loss_taken_off"]]
    text = "Integrated gradients sum to what all heads together take off the loss, within {:.1f} %."
    return text.format(100 * max(gaps)) if gaps else ""
