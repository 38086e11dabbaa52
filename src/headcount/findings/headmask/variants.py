"""Ways to choose the heads that training masks, side by side: loss, BLEU, time, what was masked."""

from collections.abc import Iterable, Mapping
from functools import cache

import numpy as np
import pandas as pd

from headcount.base.settings.training_runs import RunSettings
from headcount.findings import exhibits
from headcount.findings.headmask.locked_in import History
from headcount.findings.headmask.locked_tables import LOCKED_IN, recorded
from headcount.findings.headmask.regularisation import (
    DEV,
    MEAN,
    bleu_values,
    difference,
    difference_cell,
    read_bleu,
)
from headcount.findings.masked_training import warn_of_collapse
from headcount.findings.results import BASE, KEYS, Results, curve_table, read_runs
from headcount.findings.scores import describe_search
from headcount.findings.setting import OVER_SEEDS, describe_setting
from headcount.findings.tables import NONE, Table, mean_count

COLUMNS = ["pair", "test_set", "statistic", "run", "n", "reference", "against"]
COLUMNS += ["value", "low", "high", "p", "seeds"]
REFERENCES = ("baseline", "random")
_COMPARED = ("dev_loss", "bleu")
_VALUES = [*KEYS, "test_set", "statistic", "value"]
_CAPTION = (
    "Which way to choose the heads that training masks is worth its name? Dev loss and BLEU of "
    "each run, their differences over seeds to the baseline and to the same N at random, "
    "the time that it took, and whether the heads that it masked were of use."
)
HARM = (
    "Of harm: heads whose mean slope over the sentences of a validation interval, ∂L/∂ξ of the "
    "label-smoothed loss in the first pass, is above 0: without them it would fall, to first "
    "order. A share of masks: "
    "each time that an update masked a head counts once. Of all heads: the share if the same "
    "updates had masked as many heads at random."
)
"""What it means, for notes."""

_GROWTH = (
    "Loss added: about what masking a head adds to a sentence's loss, −mean slope + variance of "
    "slopes ÷ 2 (which stands for the second derivative), in nats; mean over masks, and beside it "
    "over all heads alike. The variance does so only where slopes are noise about 0: of locked "
    "heads it is large as the slopes are, and the number may be above 0 where masking lowers the "
    "loss; table headmask_collapse has the loss with and without masks. Intervals with an update "
    "before the rule begins do not count; runs without first passes have neither number."
)
_NOTES = (
    f"To baseline: a run minus {BASE} of the same seed, after as many updates (with "
    "train.patience a training may end earlier, and they differ in length); to random: minus the "
    "run that draws the same N in every update, of the same dropout as the run, the same after, "
    "in whose updates neither masks any, and the same rest; a random run whose heads rest is "
    "compared with that whose heads do not. In brackets the 95 % t interval of the mean over "
    "seeds, then p by two-sided paired t-test, not corrected for the number of runs. A run that "
    "masks with probability p masks fewer heads than random does, and one with a sign slightly "
    "fewer.",
    "Dev loss: plain cross-entropy in nats per target token with all heads on, the lowest of all "
    "validations, lower is better. BLEU: mean over all test sets, by seed.",
    "Seconds: of training by the clock, validations included, with whatever else the machine did, "
    "so not the cost of a method; in brackets divided by the baseline's of the same seed. Where an "
    "update takes a pass more, to rank heads, a run that is worse after as many updates is worse "
    "at equal time as well: in its time the other had reached the lower loss. Nothing else is said "
    "of equal time: under a schedule, a training that is not over cannot be compared.",
    HARM,
    _GROWTH,
    LOCKED_IN,
    OVER_SEEDS,
)


@exhibits.table("headmask_variants", needs=("variants", "scores", "curves", "masks", "slopes"))
def table(results: Results) -> Table:
    """Ways to choose the heads that training masks."""
    tidy = of_experiment(results)
    setting = describe_setting(results, results.read(curve_table, "curves"))
    notes = (*_NOTES, *setting, results.read(describe_search, "scores"))
    return Table(
        tidy, _summary(tidy), _CAPTION, notes, warn_of_collapse(results, set(tidy["pair"]))
    )


@cache
def of_experiment(results: Results) -> pd.DataFrame:
    """`variants_table` of all runs with as many heads as the settings' model."""
    parts = (
        training_values(results.read(curve_table, "curves")),
        bleu_values(results.read(read_bleu, "scores")),
        mask_values(recorded(results)),
    )
    values = pd.concat([part[_VALUES] for part in parts], ignore_index=True)
    return variants_table(values, results.read(read_runs, "variants"))


def training_values(curves: pd.DataFrame) -> pd.DataFrame:
    """Lowest dev loss, seconds, and seconds divided by the baseline's of the same seed.

    `curves` come from `curve_table`. Columns pair, run, seed, test_set, statistic, value.
    """
    models = curves.groupby(KEYS, sort=False)
    found = models.agg(dev_loss=("dev_loss", "min"), seconds=("seconds", "last")).reset_index()
    base = found[found["run"] == BASE].set_index(["pair", "seed"])["seconds"]
    alike = base.reindex(pd.MultiIndex.from_frame(found[["pair", "seed"]])).to_numpy()
    long = found.assign(relative_seconds=found["seconds"] / alike).melt(KEYS, var_name="statistic")
    sets = np.where(long["statistic"] == "dev_loss", DEV, "")
    return long.assign(test_set=sets).dropna(subset="value")


def mask_values(histories: Iterable[History]) -> pd.DataFrame:
    """Numbers of `what_was_masked` of each training, in columns as `training_values` has."""
    rows = [
        (*history.key, "", statistic, value)
        for history in histories
        for statistic, value in what_was_masked(history).items()
    ]
    return pd.DataFrame(rows, columns=_VALUES)


def what_was_masked(history: History) -> dict[str, float]:
    """How many heads were locked in for a while, and of which use the masked heads were.

    `harmful_share`: share of masks, 0 to 1, on heads whose mean slope of the interval is above 0.
    `masked_growth`: mean over masks of about what masking adds to a sentence's loss, nats, the
    variance of slopes standing for the second derivative. `heads_harmful_share` and
    `heads_growth`: the same if each interval's masks had been spread over all heads alike. None of
    the four without slopes of free intervals with a mask.
    """
    found = {"locked_ever": float(history.ever.sum())}
    known = history.free & ~np.isnan(history.slope_mean).any(axis=1)
    masks = (history.masked * history.lengths[:, None])[known]
    if not masks.any():
        return found
    slopes, deviations = history.slope_mean[known], history.slope_sd[known]
    growth = deviations**2 / 2 - slopes
    alike = np.broadcast_to(masks.mean(axis=1, keepdims=True), masks.shape)
    for share, mean, weights in (
        ("harmful_share", "masked_growth", masks),
        ("heads_harmful_share", "heads_growth", alike),
    ):
        found[share] = float(np.average(slopes > 0, weights=weights))
        found[mean] = float(np.average(growth, weights=weights))
    return found


def variants_table(values: pd.DataFrame, runs: Mapping[str, RunSettings]) -> pd.DataFrame:
    """Means over seeds, and differences to other runs: columns of `COLUMNS`.

    `values` has pair, run, seed, test_set, statistic, value; `runs` are settings by name. A row
    without a reference is a mean. One with it is the mean difference, of dev loss or BLEU, to the
    run `against`: the baseline, or the one that masks as many heads at random. Interval and p are
    those of `difference`.
    """
    rows, index = [], ["test_set", "statistic", "run", "seed"]
    for pair, of_pair in values.groupby("pair", sort=False):
        found = of_pair.set_index(index)["value"]
        for (test, statistic, run), cells in found.groupby(level=index[:3], sort=False):
            about = (pair, test, statistic, run, runs[run].heads or 0)
            rows.append((*about, "", "", cells.mean(), "", "", "", len(cells)))
            others = _others(runs[run]) if statistic in _COMPARED else {}
            for reference, other in others.items():
                apart = difference(found, cells, other)
                rows += [(*about, reference, other, *each) for each in apart]
    return pd.DataFrame(rows, columns=COLUMNS)


def _others(run: RunSettings) -> dict[str, str]:
    """By reference, the run that a run is compared with.

    A run of importance with the random one that differs in the choice alone; a random one whose
    heads rest with that whose heads do not.
    """
    rest = run.rest if run.method == "importance" else 0
    alike = {"dropout": run.dropout, "after": run.after, "rest": rest}
    drawn = RunSettings(method="random", heads=run.heads or 0, **alike)
    return dict(zip(REFERENCES, (BASE, drawn.label), strict=True))


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per run."""
    tests = table.loc[table["statistic"] == "bleu"].groupby("pair")["test_set"].unique()
    rows = [
        _cells(found, tests[pair])
        for (pair, _), found in table.groupby(["pair", "run"], sort=False)
    ]
    shown = pd.DataFrame(rows)
    several = any(len(names) > 2 for names in tests)  # the mean is one of them
    return shown if several else shown.drop(columns="BLEU, first test set")


def _cells(found: pd.DataFrame, tests: Iterable[str]) -> dict[str, str]:
    """A row of `_summary`, from the rows of one pair and run."""
    means = found[found["reference"] == ""].set_index(["test_set", "statistic"])["value"]
    first = next(name for name in tests if name != MEAN)
    row = {"pair": found["pair"].iloc[0], "run": found["run"].iloc[0]}
    row["N"] = str(found["n"].iloc[0])
    for words, test, statistic, digits in (
        ("dev loss", DEV, "dev_loss", 3),
        ("BLEU", MEAN, "bleu", 2),
    ):
        row[words] = f"{means[test, statistic]:.{digits}f}"
        of = found[(found["test_set"] == test) & (found["statistic"] == statistic)]
        for reference in REFERENCES:
            cell = difference_cell(of.set_index("reference"), reference, digits)
            row[f"{words}, to {reference}"] = cell
    row["BLEU, first test set"] = f"{means[first, 'bleu']:.2f}"
    return row | _training_cells(means[""]) | {"seeds": str(found["seeds"].max())}


def _training_cells(means: pd.Series) -> dict[str, str]:
    """Cells on how a run was trained, from means by statistic."""
    relative = means.get("relative_seconds")
    times = "" if relative is None else f" ({relative:.2f} ×)"
    row = {"seconds": f"{means['seconds']:.0f}{times}"}
    for words, statistic, written in (
        ("masks of harm", "harmful_share", _percent),
        ("of all heads", "heads_harmful_share", _percent),
        ("loss added by masks", "masked_growth", _signed),
        ("by all heads", "heads_growth", _signed),
    ):
        row[words] = written(means[statistic]) if statistic in means.index else NONE
    return row | {"locked in": mean_count([round(means["locked_ever"], 1)])}


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _signed(value: float) -> str:
    return f"{value:+z.3f}"
