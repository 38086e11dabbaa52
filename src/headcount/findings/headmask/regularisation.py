"""Masked heads as a regulariser: BLEU and dev loss beside the baseline and tuned dropout."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pandas as pd

from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.findings import exhibits
from headcount.findings.headmask.optima import ENOUGH, TUNED, enough, masks_at_tuned, warn_of_edges
from headcount.findings.masked_training import frequencies, read_masks, warn_of_collapse
from headcount.findings.results import BASE, KEYS, Results, curve_table, run_of
from headcount.findings.scores import describe_search, read_scores
from headcount.findings.setting import OVER_SEEDS, describe_setting
from headcount.findings.significance import paired_t
from headcount.findings.tables import NONE, Table, p_value

COLUMNS = ["pair", "test_set", "statistic", "run", "dropout", "share", "chosen"]
COLUMNS += ["reference", "against", "value", "low", "high", "p", "seeds"]
DEV, MEAN = "dev", "mean"
REFERENCES = ("baseline", "same dropout", TUNED)
_COMPARED = ("dev_loss", "bleu")
_MODEL = [*KEYS, "dropout", "update", "dev_loss", "patience"]
_CAPTION = (
    "Does masking heads in training regularise, and more than dropout does? BLEU and dev loss of "
    "each run, and their differences over seeds to the baseline and to tuned dropout."
)
_NOTES = (
    f"Baseline: {BASE}, with the model's own dropout. Tuned dropout: of the runs that mask no "
    "head, the one whose dev loss is lowest in the mean over the seeds that all runs have; no test "
    f"set chose anything. A run counts in this from {ENOUGH} trainings on, or with as many as any "
    "other has. Chosen: that run, and of those that mask heads the one that the same rule "
    "chooses, among the dropouts and shares that were tried; the two may differ in dropout as "
    "well. The others show how it depends on the share. Same dropout: the run that masks no head "
    "and has the dropout of the run; the difference to it alone is what masks add.",
    "Differences are by seed, a run minus another of the same seed; in brackets the 95 % t "
    "interval of their mean, then p by two-sided paired t-test, not corrected for the number of "
    "runs.",
    "Dev loss: plain cross-entropy in nats per target token of the weights that became the model, "
    "lower is better; update: those after which they were kept.",
    "Masked: share of all heads that an update masks, mean over updates.",
    "Mean: of BLEU over all test sets of the pair, by seed.",
    OVER_SEEDS,
)


@exhibits.table(
    "headmask_regularisation", needs=("models_by_dropout", "scores", "curves"), uses=("masks",)
)
def table(results: Results) -> Table:
    """Masking and dropout as regularisers."""
    tidy = of_experiment(results)
    models = results.read(read_models, "models_by_dropout")
    notes = (
        *_NOTES,
        *masks_at_tuned(tidy),
        *describe_setting(results, models),
        f"Dropout of the model: {results.model.dropout:g}.",
        results.read(describe_search, "scores"),
    )
    warnings = (*warn_of_collapse(results, set(tidy["pair"])), *warn_of_edges(tidy))
    return Table(tidy, _summary(tidy), _CAPTION, notes, warnings)


def read_models(files: list[Path]) -> pd.DataFrame:
    """What became the model, from the model.json of runs: columns pair, run, seed, then its
    dropout, the update after which its weights were kept, its dev loss, and `train.patience`.
    """
    rows = []
    for path in files:
        facts = read_json(path)
        trained = facts["provenance"]["settings"].get("train", {})
        kept = (facts["model"]["dropout"], facts["update"], facts["dev_loss"])
        rows.append((*run_of(path), *kept, trained.get("patience", 0)))  # older ones had none
    return pd.DataFrame(rows, columns=_MODEL)


@cache
def of_experiment(results: Results) -> pd.DataFrame:
    """`regularisation_table` of all runs with as many heads as the settings' model."""
    shares = frequencies(results.read(read_masks, "masks")).groupby(KEYS[:2]).mean()
    masked = [name for name, run in results.runs.items() if run.heads]
    models = results.read(read_models, "models_by_dropout")
    models = with_ends(models, results.read(curve_table, "curves"))
    return regularisation_table(models, results.read(read_bleu, "scores"), shares, masked)


def with_ends(models: pd.DataFrame, curves: pd.DataFrame) -> pd.DataFrame:
    """`models` of `read_models` with `cut_short`: 1 where training ended before dev loss turned.

    Else 0: `patience` validations, at least one, followed the update whose weights were kept.
    """
    both = models.merge(curves[[*KEYS, "step"]], on=KEYS)
    later = both[both["step"] > both["update"]].groupby(KEYS).size()
    waited = [later.get(key, 0) for key in models[KEYS].itertuples(index=False, name=None)]
    return models.assign(cut_short=(models["patience"].clip(lower=1) > waited).astype(float))


def read_bleu(files: list[Path]) -> pd.DataFrame:
    """BLEU of runs, from their bleu.json: columns pair, run, seed, test_set, bleu.

    Raises UserError for a run that lacks a test set of its pair: its mean would be of others.
    """
    rows = []
    for found in map(read_scores, files):
        head = {key: found[key] for key in KEYS}
        rows += [
            head | {"test_set": score["test_set"], "bleu": score["score"]}
            for score in found["scores"]
            if score["metric"] == "bleu"
        ]
    found = pd.DataFrame(rows, columns=[*KEYS, "test_set", "bleu"])
    of_pair = found.groupby("pair")["test_set"].agg(set)
    for key, tests in found.groupby(KEYS)["test_set"].agg(set).items():
        if lacking := of_pair[key[0]] - tests:
            raise UserError(
                f"bleu.json of {key[1]}, seed {key[2]} of {key[0]}: expected BLEU on "
                f"{', '.join(sorted(lacking))}, as other runs have it, found none; translate and "
                "score it again"
            )
    return found


def regularisation_table(
    models: pd.DataFrame, bleu: pd.DataFrame, shares: pd.Series, masked: list[str]
) -> pd.DataFrame:
    """Means over seeds, and differences to other runs: columns of `COLUMNS`.

    `models` come from `with_ends`, `bleu` from `read_bleu`; `shares`, by pair and run, say which
    part of the heads an update masks; `masked` names the runs that mask any. A row without a
    reference is a mean. One with it is the mean difference to the run `against`: the baseline, the
    run without masks that has the same dropout, or tuned dropout. Interval and p are those of
    `difference`.
    """
    rows = []
    for pair, of_pair in models.groupby("pair", sort=False):
        runs = _over_common_seeds(of_pair)
        mask = runs.index.isin(masked)
        plain_loss = runs.loc[~mask, "dev_loss"]
        tuned = plain_loss.idxmin() if plain_loss.notna().any() else BASE
        chosen = {tuned} | set(runs.loc[mask, "dev_loss"].dropna().nsmallest(1).index)
        plain = {rate: name for name, rate in runs.loc[~mask, "dropout"].items()}
        found = _values(of_pair, bleu[bleu["pair"] == pair])
        for (test, statistic, run), values in found.groupby(level=[0, 1, 2], sort=False):
            if run not in runs.index:
                continue
            rate = float(runs.loc[run, "dropout"])
            about = (pair, test, statistic, run, rate, float(shares.get((pair, run), 0.0)))
            about = (*about, "yes" if run in chosen else "no")
            rows.append((*about, "", "", values.mean(), "", "", "", len(values)))
            others = zip(REFERENCES, (BASE, plain.get(rate, ""), tuned), strict=True)
            for reference, other in others if statistic in _COMPARED else ():
                apart = difference(found, values, other)
                rows += [(*about, reference, other, *each) for each in apart]
    return pd.DataFrame(rows, columns=COLUMNS)


def _over_common_seeds(models: pd.DataFrame) -> pd.DataFrame:
    """Dropout of each run, and its mean dev loss over the seeds that every run has.

    Of the runs, that is, with `ENOUGH` seeds or as many as any; NaN for others, and where they
    share none: dev loss then chooses nothing, and the baseline stands.
    """
    of_run = models.groupby("run", sort=False)
    seeds = of_run["seed"].apply(set)
    seeds = seeds[enough(seeds.map(len))]
    counted = models["run"].isin(seeds.index) & models["seed"].isin(set.intersection(*seeds))
    shared = models[counted].groupby("run", sort=False)["dev_loss"].mean()
    return of_run[["dropout"]].first().assign(dev_loss=shared)


def _values(models: pd.DataFrame, bleu: pd.DataFrame) -> pd.Series:
    """Numbers of one pair by test set, statistic, run and seed; BLEU's mean over test sets too."""
    parts = [
        models.assign(test_set=DEV, statistic=name).rename(columns={name: "value"})
        for name in ("dev_loss", "update", "cut_short")
    ]
    parts.append(bleu_values(bleu))
    index = ["test_set", "statistic", "run", "seed"]
    return pd.concat([part[[*index, "value"]] for part in parts]).set_index(index)["value"]


def bleu_values(bleu: pd.DataFrame) -> pd.DataFrame:
    """BLEU of `read_bleu` with `statistic` and `value`, one test set after another.

    Before them stands their mean, as test set `MEAN`.
    """
    mean = bleu.groupby(KEYS, sort=False)["bleu"].mean().reset_index().assign(test_set=MEAN)
    by_test = (rows for _, rows in bleu.groupby("test_set", sort=False))
    both = pd.concat([mean, *by_test], ignore_index=True)
    return both.assign(statistic="bleu").rename(columns={"bleu": "value"})


def difference(found: pd.Series, values: pd.Series, other: str) -> Iterator[tuple]:
    """Mean difference to another run, its interval, p and seeds; none to itself or without one.

    `found` has numbers of one pair by test set, statistic, run and seed, `values` those of one run.
    Interval and p, by paired t-test over the seeds that both have, are empty for one seed.
    """
    test, statistic, run, _ = values.index[0]
    if other == run or (test, statistic, other) not in found.index.droplevel("seed"):
        return
    others = found.xs((test, statistic, other), level=[0, 1, 2])
    apart = (values.droplevel([0, 1, 2]) - others).dropna()
    if len(apart) > 1:
        yield (apart.mean(), *paired_t(apart.to_numpy()), len(apart))
    elif len(apart) == 1:
        yield (apart.mean(), "", "", "", 1)


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per pair, statistic and run."""
    rows, keys = [], ["pair", "test_set", "statistic", "run"]
    updates = table[table["statistic"] == "update"].set_index(["pair", "run"])["value"]
    shown = table[table["statistic"].isin(_COMPARED)]
    for (pair, test, statistic, run), found in shown.groupby(keys, sort=False):
        digits, name = (2, f"BLEU, {test}") if statistic == "bleu" else (3, "dev loss")
        first = found.iloc[0]
        row = {"pair": pair, "of": name, "run": run, "dropout": f"{first['dropout']:g}"}
        row |= {"masked": f"{100 * first['share']:.1f} %", "chosen": first["chosen"]}
        row |= {"update": f"{updates[pair, run]:.0f}", "mean": f"{first['value']:.{digits}f}"}
        differences = found.set_index("reference")
        for reference in REFERENCES:
            row[f"to {reference}"] = difference_cell(differences, reference, digits)
        rows.append(row | {"seeds": first["seeds"]})
    return pd.DataFrame(rows)


def difference_cell(differences: pd.DataFrame, reference: str, digits: int) -> str:
    """A mean difference with its interval and p, of rows by reference; a dash where none is."""
    if reference not in differences.index:
        return NONE
    value, low, high, p = differences.loc[reference, ["value", "low", "high", "p"]]
    bounds = "" if low == "" else f" ({low:+z.{digits}f} to {high:+z.{digits}f}), p {p_value(p)}"
    return f"{value:+z.{digits}f}{bounds}"
