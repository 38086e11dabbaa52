"""Roles of encoder heads: labels by relative position, by relation and for rare words."""

import pandas as pd

from headcount.analysis.frames import HEAD, RUN

_ENDS = {"nsubj": ("v", "s"), "obj": ("v", "o"), "amod": ("n", "a"), "advmod": ("v", "adv")}


def arrow(relation: str, direction: str) -> str:
    """Return the notation of Voita et al.: `v→s` looks from the verb to its subject."""
    governor, dependent = _ENDS.get(relation, ("head", relation))
    ends = (governor, dependent) if direction == "to_dependent" else (dependent, governor)
    return "→".join(ends)


def preferred(positions: pd.DataFrame) -> pd.DataFrame:
    """Return, for every head, the row of the position at which most of its largest weights are."""
    return positions.loc[positions.groupby([*RUN, *HEAD], sort=False)["hits"].idxmax()]
