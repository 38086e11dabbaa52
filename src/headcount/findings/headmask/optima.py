"""Whether what dev loss chose among masks and dropouts is an optimum: sentences that warn."""

from collections.abc import Iterator

import pandas as pd

TUNED = "tuned dropout"
"""The reference that is the best of the runs without masks."""

HIGHEST = "the highest that was tried without masks"

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
            better = "a higher one" if edge == HIGHEST else "another"
            found.append(f"{pair}: tuned dropout: {edge}, so that {better} may be better still.")
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


def edge_of(rows: pd.DataFrame) -> str:
    """That tuned dropout is the highest, or the only one, of runs of one pair without masks.

    Empty where it is neither, or where nothing is compared with it. Runs with too few trainings to
    be chosen say nothing of it.
    """
    plain = rows[rows["share"] == 0].set_index("run")["dropout"]
    plain = plain[~plain.index.isin(too_few(rows).index)]
    if not any(plain[name].max() == plain.max() for name in _tuned(rows)):
        return ""
    several = plain.nunique() > 1
    return HIGHEST if several else "the only one that was tried without masks"


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
