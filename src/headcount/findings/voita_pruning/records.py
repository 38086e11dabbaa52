"""The record of every pruned run, and at how many heads BLEU begins to fall."""

from functools import cache

import pandas as pd

from headcount.base.addresses import KINDS
from headcount.base.errors import UserError
from headcount.base.settings.runs import label
from headcount.base.settings.short_names import decimal
from headcount.findings.cells import NONE, interval, mean_count, mean_sd, p_value
from headcount.findings.results import Results
from headcount.findings.run_tables import KEYS
from headcount.findings.scores import Scores
from headcount.findings.setting import OVER_SEEDS, of_one_training
from headcount.findings.tables import Table
from headcount.findings.voita_pruning.heads import DECIDED, PrunedModel
from headcount.findings.voita_pruning.measured import (
    all_scores,
    describe_scored,
    describe_spent,
    pruned_models,
)

_TEST = ["start_bleu", "control_bleu", "delta", "delta_low", "delta_high", "p", "signature"]
COLUMNS = [*KEYS, "test_set", "how", "scope", "lambda", "start", "heads", "heads_left"]
COLUMNS += [
    "scope_heads",
    "scope_left",
    *KINDS,
    *(f"{kind}_layers" for kind in KINDS),
    "polarised",
    "bleu",
    *_TEST,
]

CAPTION = (
    "Every pruned run. Heads left, in all and by kind; in brackets by layer, the first layer "
    f"first. Polarised: share of gates with a chance above {DECIDED} of being 0, or of being 1. "
    "Difference: to the run with λ = 0 of the same scope, start and seed, which was fine-tuned for "
    "as many updates and has lost no head to λ; its 95 % interval and p by paired bootstrap "
    "over test sentences, for each seed in turn. Start: BLEU of the model that was pruned. The "
    "difference of a run from scratch also holds that it was trained anew. "
    f"{of_one_training('test sentences')} {OVER_SEEDS}"
)


def pruning(results: Results) -> Table:
    """Every pruned run."""
    table = records(results)
    caption = f"{CAPTION} {describe_spent(results)} {describe_scored(results)}"
    return Table(table, pruning_summary(table), caption)


@cache
def records(results: Results) -> pd.DataFrame:
    """The record of every pruned run; see `pruning_table`."""
    return pruning_table(pruned_models(results), all_scores(results))


def pruning_table(models: list[PrunedModel], scores: Scores) -> pd.DataFrame:
    """One pruned run on one test set a row: columns of `COLUMNS`.

    `lambda` in nats per target token and head; `heads` of the original model, and `scope_…` those
    of the kinds that could lose any; `<kind>_layers` lists heads left by layer, separated
    by spaces; `polarised` is a share, empty for runs without gates; `delta` = BLEU − that of the
    λ = 0 control. Raises UserError where that control is missing.
    """
    of_control: dict[tuple, list[PrunedModel]] = {}
    for model in models:
        of_control.setdefault(model.control, []).append(model)
    _check_controls(of_control, {model.key for model in models})
    for control, compared in of_control.items():
        for test, *_ in scores.of(control):
            scores.compare(control, [model.key for model in compared], test)
    return pd.DataFrame([row for model in models for row in _rows(model, scores)], columns=COLUMNS)


def _check_controls(of_control: dict[tuple, list[PrunedModel]], known: set[tuple]) -> None:
    for control, compared in of_control.items():
        if control not in known:
            raise UserError(
                f"{label(compared[0].run)} ({control[0]}, seed {control[2]}): expected its control "
                f"{control[1]!r}, fine-tuned for as many updates with λ = 0, found no such "
                "run; add it to `pruned`"
            )


def _rows(model: PrunedModel, scores: Scores) -> list[list]:
    run = model.run
    layers = [" ".join(map(str, model.left[kind])) for kind in KINDS]
    rows = []
    for test, bleu, _ in scores.of(model.key):
        found = scores.compare(model.control, [model.key], test)[model.key]
        judged = [scores.bleu(model.start, test), scores.bleu(model.control, test)]
        judged += [found.delta, found.low, found.high, found.p_value, found.signature]
        facts = [
            run.word,
            run.scope,
            run.lambda_,
            label(run.init_from),
            model.grid.size,
            model.heads_left,
            model.scope_heads,
            model.scope_left,
            *model.by_kind.values(),
            *layers,
            model.polarised,
            bleu,
        ]
        rows.append([*model.key, test, *facts, *judged])
    return rows


def pruning_summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per run and test set, means over seeds."""
    rows = []
    for (pair, test, run), found in table.groupby(["pair", "test_set", "run"], sort=False):
        row = {"pair": pair, "test set": test, "run": run, "λ": decimal(found["lambda"].iloc[0])}
        row["heads left"] = mean_count(found["heads_left"])
        row |= {_TITLES[kind]: _by_layer(found, kind) for kind in KINDS}
        row["polarised"] = mean_sd(found["polarised"])
        row |= {"start": mean_sd(found["start_bleu"]), "BLEU": mean_sd(found["bleu"])}
        rows.append(row | _judged(found))
    return pd.DataFrame(rows)


_TITLES = {"enc_self": "encoder", "dec_self": "decoder", "dec_enc": "decoder-encoder"}


def _by_layer(found: pd.DataFrame, kind: str) -> str:
    """Heads left of a kind; with one seed, its layers in brackets."""
    layers = f" ({found[f'{kind}_layers'].iloc[0]})" if len(found) == 1 else ""
    return mean_count(found[kind]) + layers


def _judged(found: pd.DataFrame) -> dict[str, str]:
    """Difference to the control; a dash for the control itself."""
    if (found["how"] == "gates").all() and (found["lambda"] == 0).all():
        return {"difference": NONE, "95 % interval": NONE, "p": NONE}
    return {
        "difference": mean_sd(found["delta"], "+"),
        "95 % interval": interval(found["delta_low"], found["delta_high"]),
        "p": ", ".join(map(p_value, found["p"])),
    }
