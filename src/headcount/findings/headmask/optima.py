"""Whether what dev loss chose among masks and dropouts is an optimum: sentences that warn."""

from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

TUNED = "tuned dropout"
"""The reference that is the best of the runs without masks."""


class Edge(NamedTuple):
    """Why tuned dropout may be no optimum, in words."""

    which: str  # of the dropouts it is
    better: str  # what may be better still
    beside: str  # what was tried, of a verdict beside tuned dropout


ONLY = Edge(
    "the only one that was tried without masks", "another", "the one dropout that was tried"
)
HIGHEST = Edge(
    "the highest that was tried without masks",
    "a higher one",
    "the dropouts that were tried; higher ones were not",
)
FEW = Edge(
    "the highest of enough trainings",
    "a higher one",
    "the dropouts of enough trainings; higher ones have too few",
)
UNTURNED = Edge(
    "the highest at which dev loss turned",
    "a higher one, in longer trainings,",
    "the dropouts at which dev loss turned; higher ones ended before",
)

ENOUGH = 3
"""Trainings from which on a run may be chosen although others have more: the t interval of two is
nearly four times as wide as that of three whose numbers spread as much."""


def enough(trainings: pd.Series) -> pd.Series:
    """Of numbers of trainings, by run of one pair: whether there are enough to choose the run."""
    return trainings >= min(ENOUGH, trainings.max())


def warn_of_edges(table: pd.DataFrame) -> tuple[str, ...]:
    """What may not be an optimum in rows of `regularisation_table`: a sentence each, by pair.

    That trainings were cut short, that no dropout was tried above the tuned one, that dev loss
    hardly tells another run from it, and that runs have too few trainings to be chosen.
    """
    found = []
    for pair, rows in table.groupby("pair", sort=False):
        late, trainings, runs = cut_short(rows)
        if late:
            found.append(
                f"{pair}: {late} of {trainings} trainings ({', '.join(runs)}) ended before dev "
                "loss had turned: it was lowest at the last update, or fewer validations followed "
                "than train.patience asks for. Longer ones may be better."
            )
        if edge := edge_of(rows):
            found.append(
                f"{pair}: tuned dropout: {edge.which}, so that {edge.better} may be better still."
            )
        found += [f"{pair}: {told}" for told in _near_tuned(rows)]
        if few := [f"{run} ({count:.0f})" for run, count in too_few(rows).items()]:
            found.append(
                f"{pair}: too few trainings to be chosen: {', '.join(few)}. With more of them dev "
                "loss may choose otherwise."
            )
    return tuple(found)


def _near_tuned(rows: pd.DataFrame) -> Iterator[str]:
    """A sentence on each run of one pair without masks that dev loss hardly tells from tuned."""
    plain = rows[(rows["statistic"] == "dev_loss") & (rows["share"] == 0)]
    plain = plain[plain["reference"] == TUNED].replace({"low": {"": None}})
    for row in plain[plain["low"].astype(float) <= 0].to_dict("records"):
        apart = f"{row['value']:+.4f} ({row['low']:+.4f} to {row['high']:+.4f})"
        yield (
            f"dev loss of {row['run']} lies {apart} nats above that of tuned dropout "
            f"({row['against']}): other trainings might choose it."
        )


def cut_short(rows: pd.DataFrame) -> tuple[int, int, list[str]]:
    """How many trainings of one pair were cut short, of how many, and the names of their runs."""
    ends = rows[rows["statistic"] == "cut_short"]
    late = (ends["value"] * ends["seeds"]).round()
    return int(late.sum()), int(ends["seeds"].sum()), list(ends.loc[late > 0, "run"])


def too_few(rows: pd.DataFrame) -> pd.Series:
    """Trainings of the runs of one pair that have not enough to be chosen, by run."""
    trainings = rows[rows["statistic"] == "update"].set_index("run")["seeds"]
    return trainings[~enough(trainings)]


def edge_of(rows: pd.DataFrame) -> Edge | None:
    """Why tuned dropout may be no optimum among the runs of one pair without masks.

    It is the only dropout, the highest, the highest of enough trainings to be chosen, or the
    highest at which dev loss turned: in half of the trainings or more, and in fewer at each that is
    higher. None where it is none of these, or where nothing is compared with it.
    """
    plain = rows[rows["share"] == 0]
    ends = plain[plain["statistic"] == "cut_short"].set_index("run")["value"]
    rates = plain.groupby("run")["dropout"].first()
    turned = ends.reindex(rates.index, fill_value=0) <= 0.5
    tried = ~rates.index.isin(too_few(rows).index)
    for name in _tuned(rows):
        higher = rates > rates[name]
        if not higher.any():
            return HIGHEST if rates.nunique() > 1 else ONLY
        if not (higher & tried).any():
            return FEW
        if turned[name] and not turned[higher & tried].any():
            return UNTURNED
    return None


def masks_at_tuned(table: pd.DataFrame) -> tuple[str, ...]:
    """A sentence for each pair: which runs with masks have tuned dropout, by rows as above."""
    found = []
    for pair, rows in table.groupby("pair", sort=False):
        for name in _tuned(rows):
            rate = rows.loc[rows["run"] == name, "dropout"].iloc[0]
            alike = rows[(rows["share"] > 0) & (rows["dropout"] == rate)]["run"].unique()
            found.append(
                f"{pair}: runs that mask heads at tuned dropout ({name}): {', '.join(alike)}; "
                "their difference to the same dropout is that to tuned dropout."
                if len(alike)
                else f"{pair}: no run masks heads at tuned dropout ({name}), so that nothing "
                "says what masks add to it."
            )
    return tuple(found)


def _tuned(rows: pd.DataFrame) -> list[str]:
    """The run of tuned dropout of one pair; none where no other run is compared with it."""
    return list(rows.loc[rows["reference"] == TUNED, "against"].unique())
