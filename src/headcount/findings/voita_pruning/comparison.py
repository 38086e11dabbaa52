"""Gates against other ways to choose as many heads, and against other models to start from."""

from functools import cache
from pathlib import Path

import pandas as pd

from headcount.base.errors import UserError
from headcount.findings import exhibits
from headcount.findings.cells import NONE, mean_count, mean_sd
from headcount.findings.results import Results
from headcount.findings.run_tables import BASE, gather
from headcount.findings.scores import Scores
from headcount.findings.setting import OVER_SEEDS, of_one_training
from headcount.findings.tables import Table
from headcount.findings.voita_pruning.heads import key_of
from headcount.findings.voita_pruning.measured import (
    all_scores,
    compare,
    describe_scored,
    describe_spent,
    describe_untuned,
    difference_cells,
    pruned_models,
)

COLUMNS = ["pair", "test_set", "seed", "gates_run", "scope", "lambda", "comparison", "contender"]
COLUMNS += ["run", "draw", "heads_left", "bleu", "against", "delta", "delta_low", "delta_high", "p"]
COLUMNS += ["control_delta", "signature"]
_MASKED = ["test_set", "order", "as_run", "draw", "heads_masked", "bleu", "delta", "delta_low"]
_MASKED += ["delta_high", "p", "signature"]
_CONTENDERS = ("gates", "ranked", "drawn", "scratch")
TUNED, UNTUNED, START = "tuned", "untuned", "start"

CAPTION = (
    "Ways to choose which heads to keep, at equal numbers: gates; ranked, the most important ones "
    "of the start model, chosen in one go by importance.csv as it is (divided by the layer's norm "
    "only where importance.normalise says so); drawn at random, for tuned models once per seed. "
    "Tuned: every model fine-tuned for as many updates; scratch: the heads that gates kept, "
    "trained from a random start by the whole "
    "recipe; differences are to the gates run. Untuned: the start model's own weights with those "
    "heads silenced; differences are to that model with all heads, on the same sentences. Start: "
    "gates on models trained with masked heads, at the same λ, which need not keep as many heads; "
    "differences are to gates on the baseline. To control: difference to the λ = 0 run of the same "
    "scope and start, which says what pruning cost. Intervals (95 %) and p by paired bootstrap, "
    "for each seed in turn; of several random draws the mean, and in brackets their range. ± is "
    f"the standard deviation over seeds. {of_one_training('test sentences')} {OVER_SEEDS}"
)


@exhibits.table(
    "voita_comparison",
    "Gates beside other ways to choose heads",
    needs=("pruned_bleu", "updates"),
    uses=("untuned", "untuned_facts"),
)
def comparison(results: Results) -> Table:
    """Gates beside other ways to choose heads."""
    table = comparison_table(pruned_models(results), masked(results), all_scores(results))
    words = [CAPTION, describe_spent(results), describe_untuned(results), describe_scored(results)]
    return Table(table, comparison_summary(table), " ".join(filter(None, words)))


@cache
def masked(results: Results) -> pd.DataFrame:
    """Start models with heads silenced; see `read_untuned`."""
    return read_untuned(results.files("untuned"), results.model.grid.size)


def read_untuned(files: list[Path], grid_size: int) -> pd.DataFrame:
    """Rows of untuned_masking.csv, with their runs, and heads_left of `grid_size` heads."""
    table = gather(files, _MASKED)
    return table.assign(heads_left=grid_size - table["heads_masked"])


def comparison_table(models: pd.DataFrame, masked: pd.DataFrame, scores: Scores) -> pd.DataFrame:
    """One contender on one test set a row: columns of `COLUMNS`.

    `models` comes from `read_pruned`, `masked` from `read_untuned`. `comparison`: tuned, untuned,
    start. `delta` = BLEU − that of `against`; `control_delta` = BLEU − that of the λ = 0 control
    (empty if untuned). Empty cells: what does not apply. λ = 0 has rows only where nothing else was
    run. Raises UserError for masks of another number of heads than the gates run kept.
    """
    penalised = models[models["lambda"] > 0]
    tuned, starts = _by_gates_run(penalised), _by_start(penalised)
    rows = _rows(TUNED, tuned, "how", scores) + untuned(penalised, masked)
    rows += _rows(START, starts, "start", scores)
    if not rows:
        rows = _rows(TUNED, _by_gates_run(models, 1), "how", scores)
    table = pd.DataFrame(rows, columns=COLUMNS)
    partly = [name for name in COLUMNS if table[name].isna().any()]
    return table.astype(dict.fromkeys(partly, object)).fillna("")


def _by_gates_run(models: pd.DataFrame, fewest: int = 2) -> list[list[dict]]:
    """Each gates run, then those that have as many heads; only where there are so many."""
    groups = models.groupby(["pair", "gates_run", "seed"], sort=False)
    found = [of_run.to_dict("records") for _, of_run in groups]
    by_place = [sorted(each, key=lambda model: _CONTENDERS.index(model["how"])) for each in found]
    return [each for each in by_place if len(each) >= fewest]


def _by_start(models: pd.DataFrame) -> list[list[dict]]:
    """Gates runs of one λ from several models, the baseline among them."""
    gates = models[models["how"] == "gates"]
    groups = gates.groupby(["pair", "scope", "lambda", "seed"], sort=False)
    found = [each.to_dict("records") for _, each in groups if BASE in set(each["start"])]
    return [each for each in found if len(each) > 1]


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
                    row |= {"against": base["run"], **compare(scores, key_of(model), key, test)}
                rows.append(row | {"control_delta": bleu - control})
    return rows


def untuned(models: pd.DataFrame, masked: pd.DataFrame) -> list[dict]:
    """Rows of the start model with heads silenced, at the numbers that these gates runs kept.

    Raises UserError for another number.
    """
    gates = {key_of(model): model for model in models.to_dict("records") if model["how"] == "gates"}
    rows = []
    for found in masked.to_dict("records"):
        model = gates.get((found["pair"], found["as_run"], found["seed"]))
        if model is None:  # a control, which has kept its heads
            continue
        if model["heads_left"] != found["heads_left"]:
            raise UserError(
                f"untuned_masking.csv of {found['pair']}, {found['run']}, seed {found['seed']}: as "
                f"{found['as_run']} expected {model['heads_left']} heads left, found "
                f"{found['heads_left']}; run untuned_masking again"
            )
        row = {name: found[name] for name in COLUMNS if name in found}
        row |= {"gates_run": found["as_run"], "scope": model["scope"], "lambda": model["lambda"]}
        row |= {"comparison": UNTUNED, "contender": found["order"], "against": found["run"]}
        rows.append(row)
    return rows


_GROUP = ["pair", "test_set", "comparison", "gates_run", "contender"]


def comparison_summary(table: pd.DataFrame) -> pd.DataFrame:
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
