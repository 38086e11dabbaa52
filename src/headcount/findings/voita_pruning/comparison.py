"""Gates against other ways to choose as many heads, and against other models to start from."""

from functools import cache

import pandas as pd

from headcount.base.errors import UserError
from headcount.findings import exhibits
from headcount.findings.results import BASE, Results, gather
from headcount.findings.scores import Scores, compare, difference_cells
from headcount.findings.setting import OVER_SEEDS, of_one_training
from headcount.findings.tables import NONE, Table, fill_empty, mean_count, mean_sd
from headcount.findings.voita_pruning import measured
from headcount.findings.voita_pruning.measured import key_of

_GROUP = ["pair", "test_set", "comparison", "gates_run", "contender"]
COLUMNS = ["pair", "test_set", "seed", "gates_run", "scope", "lambda", "comparison", "contender"]
COLUMNS += ["run", "draw", "heads_left", "bleu", "against", "delta", "delta_low", "delta_high", "p"]
COLUMNS += ["control_delta", "signature"]
_MASKED = ["test_set", "order", "as_run", "draw", "heads_masked", "bleu", "delta", "delta_low"]
_MASKED += ["delta_high", "p", "signature"]
CONTENDERS = ("gates", "ranked", "drawn", "scratch", "subset")
TUNED, UNTUNED, START = "tuned", "untuned", "start"


@exhibits.table("voita_comparison", needs=("pruned_bleu", "updates"), uses=("untuned_scores",))
def comparison(results: Results) -> Table:
    """Gates beside other ways to choose heads."""
    tidy = _contenders(results)
    return Table(
        tidy,
        _summary(tidy),
        "Ways to choose which heads to keep, at equal numbers: how the BLEU of each differs from "
        "that of gates, and of the model with all heads.",
        (
            "Ways: gates; ranked, the most important ones of the start model, chosen in one go "
            "by importance.csv as it is (divided by the layer's norm only where "
            "importance.normalise says so); drawn at random, for tuned models once per seed. "
            "Tuned: every model fine-tuned for as many updates; scratch: the heads that gates "
            "kept, trained from a random start for as many updates in total; differences are to "
            "the gates run. Untuned: the start model's own weights with those heads silenced; "
            "differences are to that model with all heads, on the same sentences. Start: gates "
            "on models trained with masked heads, or from random weights, at the same λ, which "
            "need not keep as many heads; differences are to gates on the baseline. To control: "
            "difference to the λ = 0 run of the same scope and start, which says what pruning "
            "cost. Intervals (95 %) and p by paired bootstrap, nearly one-sided, for each seed "
            "in turn; of several random draws the mean, and in brackets their range. ± is the "
            "standard deviation over seeds.",
            of_one_training("test sentences"),
            OVER_SEEDS,
            *measured.describe_compared(results),
        ),
        measured.warn_of_updates(results, measured.pruned_models(results)),
    )


def _contenders(results: Results) -> pd.DataFrame:
    """One contender on one test set a row: columns of `COLUMNS`.

    `comparison`: tuned, untuned, start. `delta` = BLEU − that of `against`; `control_delta` =
    BLEU − that of the λ = 0 control (empty if untuned). Empty cells: what does not apply. λ = 0 has
    rows only where nothing else was run.
    """
    models, scores = measured.pruned_models(results), measured.all_scores(results)
    penalised = models[models["lambda"] > 0]
    gates = penalised[penalised["how"] == "gates"]
    tuned = [each for each in _groups(penalised, "gates_run") if len(each) > 1]
    started = [each for each in _groups(gates, "scope", "lambda") if len(each) > 1]
    started = [each for each in started if BASE in (model["start"] for model in each)]
    rows = _rows(TUNED, tuned, "how", scores)
    rows += untuned(results).query("`lambda` > 0").to_dict("records")
    rows += _rows(START, started, "start", scores)
    if not rows:
        rows = _rows(TUNED, _groups(models, "gates_run"), "how", scores)
    return fill_empty(pd.DataFrame(rows, columns=COLUMNS))


def _groups(models: pd.DataFrame, *names: str) -> list[list[dict]]:
    """Models of one pair and seed that share these, too; gates first."""
    ranked = models.assign(place=models["how"].map(CONTENDERS.index))
    return [
        found.sort_values("place", kind="stable").to_dict("records")
        for _, found in ranked.groupby(["pair", *names, "seed"], sort=False)
    ]


def _rows(comparison: str, groups: list[list[dict]], contender: str, scores: Scores) -> list[dict]:
    """Models that were trained, each group beside its gates run from the baseline, or its first."""
    rows = []
    for found in groups:
        base = next((each for each in found if each["start"] == BASE), found[0])
        key = key_of(base)
        for test, *_ in scores.of(key):
            scores.compare(key, map(key_of, found), test)
            for model in found:
                bleu = scores.bleu(key_of(model), test)
                control = scores.bleu(key_of(model, "control"), test)
                row = model | {"comparison": comparison, "contender": model[contender]}
                row |= {"gates_run": base["run"], "test_set": test, "bleu": bleu}
                if model is not base:
                    row |= {"against": base["run"]}
                    row |= compare(scores, key_of(model), key, test)
                rows.append(row | {"control_delta": bleu - control})
    return rows


@cache
def untuned(results: Results) -> pd.DataFrame:
    """The start model with heads silenced, at the numbers that gates runs kept.

    Columns: as far as `COLUMNS` knows them. Raises UserError for another number.
    """
    masked = gather(results.files("untuned"), _MASKED)
    masked["heads_left"] = results.model.grid.size - masked["heads_masked"]
    models = measured.pruned_models(results)
    kept = {"run": "as_run", "heads_left": "expected"}
    gates = models[models["how"] == "gates"].rename(columns=kept)
    gates = gates[["pair", "as_run", "seed", "scope", "lambda", "expected"]]
    rows = masked.merge(gates, on=["pair", "as_run", "seed"])
    stale = rows[rows["heads_left"] != rows["expected"]]
    if len(stale):
        row = stale.iloc[0]
        raise UserError(
            f"untuned_masking.csv of {row['pair']}, {row['run']}, seed {row['seed']}: as "
            f"{row['as_run']} expected {row['expected']} heads left, found "
            f"{row['heads_left']}; run untuned_masking again"
        )
    rows = rows.assign(gates_run=rows["as_run"], contender=rows["order"], against=rows["run"])
    return rows.assign(comparison=UNTUNED).reindex(columns=COLUMNS)


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per contender, means over seeds."""
    rows = []
    for (pair, test, comparison, gates_run, contender), found in table.groupby(_GROUP, sort=False):
        drawn = found[found["draw"] != ""]
        draws = f" ({drawn['bleu'].min():.2f} to {drawn['bleu'].max():.2f})" if len(drawn) else ""
        seeds = found.groupby("seed", sort=False)
        row = {"pair": pair, "test set": test, "comparison": comparison, "as": gates_run}
        row |= {"contender": contender, "heads left": mean_count(seeds["heads_left"].first())}
        row["BLEU"] = mean_sd(seeds["bleu"].mean()) + draws
        row |= {"against": found["against"].iloc[0] or NONE} | difference_cells(found)
        rows.append(row | {"to control": mean_sd(found["control_delta"], "+")})
    return pd.DataFrame(rows)
