"""Gates against other ways to choose as many heads, and against other models to start from."""

from functools import cache
from pathlib import Path

import pandas as pd

from headcount.base.errors import UserError
from headcount.base.settings.runs import label
from headcount.findings.cells import NONE, interval, mean_count, mean_sd, p_value
from headcount.findings.results import Results
from headcount.findings.run_tables import BASE, KEYS, gather
from headcount.findings.scores import Key, Scores
from headcount.findings.setting import OVER_SEEDS, of_one_training
from headcount.findings.tables import Table
from headcount.findings.voita_pruning.heads import PrunedModel
from headcount.findings.voita_pruning.measured import (
    all_scores,
    describe_scored,
    describe_spent,
    describe_untuned,
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


def comparison_table(
    models: list[PrunedModel], masked: pd.DataFrame, scores: Scores
) -> pd.DataFrame:
    """One contender on one test set a row: columns of `COLUMNS`.

    `comparison`: tuned, untuned, start. `delta` = BLEU − that of `against`; `control_delta` =
    BLEU − that of the λ = 0 control (empty if untuned). Empty cells: what does not apply. λ = 0 has
    rows only where nothing else was run. Raises UserError for masks of another number of heads
    than the gates run kept.
    """
    penalised = [model for model in models if model.run.lambda_ > 0]
    groups = _by_gates_run(penalised)
    several = [found for found in groups if len(found) > 1]
    rows = [*_tuned(several, scores), *untuned(penalised, masked), *_starts(penalised, scores)]
    if not rows:
        rows = _tuned(_by_gates_run(models), scores)
    table = pd.DataFrame(rows, columns=COLUMNS)
    partly = [name for name in COLUMNS if table[name].isna().any()]
    return table.astype(dict.fromkeys(partly, object)).fillna("")


def _by_gates_run(models: list[PrunedModel]) -> list[list[PrunedModel]]:
    """Each gates run with those that have as many heads."""
    groups: dict[Key, list[PrunedModel]] = {}
    for model in models:
        groups.setdefault(model.gates, []).append(model)
    places = {how: place for place, how in enumerate(_CONTENDERS)}
    return [sorted(found, key=lambda model: places[model.run.word]) for found in groups.values()]


def _tuned(groups: list[list[PrunedModel]], scores: Scores) -> list[dict]:
    """Models fine-tuned, or trained, with as many heads as a gates run, which is the first."""
    rows = []
    for contenders in groups:
        gates = contenders[0].key
        for test, *_ in scores.of(gates):
            scores.compare(gates, [model.key for model in contenders], test)
            for model in contenders:
                against = None if model.key == gates else gates
                row = _row(model, test, model.run.word, against, scores)
                rows.append(row | {"gates_run": gates[1], "comparison": TUNED})
    return rows


def _row(model: PrunedModel, test: str, name: str, against: Key | None, scores: Scores) -> dict:
    """One model that was trained; `against` is none for the one that others are compared with."""
    bleu = scores.bleu(model.key, test)
    row = dict(zip(KEYS, model.key, strict=True)) | {"test_set": test, "contender": name}
    row |= {"scope": model.run.scope, "lambda": model.run.lambda_, "heads_left": model.heads_left}
    row |= {"bleu": bleu, "control_delta": bleu - scores.bleu(model.control, test)}
    if against:
        found = scores.compare(against, [model.key], test)[model.key]
        row |= {"against": against[1], "delta": found.delta, "p": found.p_value}
        row |= {"delta_low": found.low, "delta_high": found.high, "signature": found.signature}
    return row


def untuned(models: list[PrunedModel], masked: pd.DataFrame) -> list[dict]:
    """Rows of the start model with heads silenced, at the numbers that these gates runs kept.

    Raises UserError for another number.
    """
    gates = {model.key: model for model in models if model.run.method == "gates"}
    rows = []
    for found in masked.to_dict("records"):
        model = gates.get((found["pair"], found["as_run"], found["seed"]))
        if model is None:  # a control, which has kept its heads
            continue
        if model.heads_left != found["heads_left"]:
            raise UserError(
                f"untuned_masking.csv of {found['pair']}, {found['run']}, seed {found['seed']}: as "
                f"{found['as_run']} expected {model.heads_left} heads left, found "
                f"{found['heads_left']}; run untuned_masking again"
            )
        own = {name: found[name] for name in COLUMNS if name in found}
        own |= {"gates_run": found["as_run"], "scope": model.run.scope, "lambda": model.run.lambda_}
        own |= {"comparison": UNTUNED, "contender": found["order"], "against": found["run"]}
        rows.append(own)
    return rows


def _starts(models: list[PrunedModel], scores: Scores) -> list[dict]:
    """Gates runs of one λ from several models, against that from the baseline."""
    gates = {model.key: model for model in models if model.run.method == "gates"}
    groups: dict[tuple, list[PrunedModel]] = {}
    for model in gates.values():
        same = (model.pair, model.run.scope, model.run.lambda_, model.seed)
        groups.setdefault(same, []).append(model)
    rows = []
    for found in groups.values():
        base = next((model for model in found if label(model.run.init_from) == BASE), None)
        if base is None or len(found) < 2:
            continue
        for test, *_ in scores.of(base.key):
            scores.compare(base.key, [model.key for model in found], test)
            for model in found:
                against = None if model is base else base.key
                row = _row(model, test, label(model.run.init_from), against, scores)
                rows.append(row | {"gates_run": base.key[1], "comparison": START})
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
        row |= {"against": found["against"].iloc[0] or NONE} | _judged(found)
        rows.append(row | {"to control": mean_sd(found["control_delta"], "+")})
    return pd.DataFrame(rows)


def _judged(found: pd.DataFrame) -> dict[str, str]:
    """Difference, with interval and p where these belong to one model of each seed."""
    compared = found[found["against"] != ""]
    by_seed = compared.groupby("seed", sort=False)["delta"].agg(lambda cells: cells.mean())
    alone = not compared["seed"].duplicated().any()
    bounds = interval(compared["delta_low"], compared["delta_high"]) if alone else NONE
    p = ", ".join(map(p_value, compared["p"])) if alone else ""
    return {"difference": mean_sd(by_seed, "+"), "95 % interval": bounds, "p": p or NONE}
