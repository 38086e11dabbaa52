"""The record of every pruned run."""

from functools import cache

import pandas as pd

from headcount.base.addresses import KINDS
from headcount.base.settings.short_names import decimal
from headcount.findings import exhibits
from headcount.findings.cells import mean_count, mean_sd
from headcount.findings.results import Results
from headcount.findings.run_tables import KEYS
from headcount.findings.setting import OVER_SEEDS, of_one_training
from headcount.findings.tables import Table
from headcount.findings.voita_pruning.heads import DECIDED, LAYERS, key_of
from headcount.findings.voita_pruning.measured import (
    all_scores,
    compare,
    describe_scored,
    describe_spent,
    difference_cells,
    pruned_models,
)

COLUMNS = [*KEYS, "test_set", "how", "scope", "lambda", "start", "heads", "heads_left"]
COLUMNS += ["scope_heads", "scope_left", *KINDS, *LAYERS, "polarised", "bleu", "start_bleu"]
COLUMNS += ["control_bleu", "delta", "delta_low", "delta_high", "p", "signature"]


@exhibits.table("voita_pruning", needs=("pruned_bleu", "updates"))
def pruning(results: Results) -> Table:
    """Every pruned run."""
    table = records(results)
    return Table(
        table,
        _summary(table),
        "Every pruned run. Heads left, in all and by kind; in brackets by layer, the first layer "
        f"first. Polarised: share of gates with a chance above {DECIDED} of being 0, or of being "
        "1. Difference: to the run with λ = 0 of the same scope, start and seed, which was "
        "fine-tuned for as many updates and has lost no head to λ; its 95 % interval and p by "
        "paired bootstrap over test sentences, for each seed in turn. Start: BLEU of the model "
        "that was pruned. The difference of a run from scratch also holds that it was trained "
        f"anew. {of_one_training('test sentences')} {OVER_SEEDS} {describe_spent(results)} "
        f"{describe_scored(results)}",
    )


@cache
def records(results: Results) -> pd.DataFrame:
    """One pruned run on one test set a row: columns of `COLUMNS`.

    `lambda` in nats per target token and head; `<kind>_layers` lists heads left by layer, separated
    by spaces; `delta` = BLEU − that of the λ = 0 control.
    """
    models, scores = pruned_models(results), all_scores(results)
    for _, compared in models.groupby(["pair", "control", "seed"], sort=False):
        found = compared.to_dict("records")
        control = key_of(found[0], "control")
        for test, *_ in scores.of(control):  # all at once, which is faster
            scores.compare(control, map(key_of, found), test)
    rows = []
    for model in models.to_dict("records"):
        key, start, control = (key_of(model, name) for name in ("run", "start", "control"))
        model |= {name: " ".join(map(str, model[name])) for name in LAYERS}
        for test, bleu, _ in scores.of(key):
            row = model | {"test_set": test, "bleu": bleu, "start_bleu": scores.bleu(start, test)}
            row["control_bleu"] = scores.bleu(control, test)
            rows.append(row | compare(scores, key, control, test))
    return pd.DataFrame(rows, columns=COLUMNS)


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per run and test set, means over seeds."""
    rows = []
    for (pair, test, run), found in table.groupby(["pair", "test_set", "run"], sort=False):
        row = {"pair": pair, "test set": test, "run": run, "λ": decimal(found["lambda"].iloc[0])}
        row["heads left"] = mean_count(found["heads_left"])
        for kind, words in zip(KINDS, ("encoder", "decoder", "decoder-encoder"), strict=True):
            layers = f" ({found[f'{kind}_layers'].iloc[0]})" if len(found) == 1 else ""
            row[words] = mean_count(found[kind]) + layers
        row["polarised"] = mean_sd(found["polarised"])
        row |= {"start": mean_sd(found["start_bleu"]), "BLEU": mean_sd(found["bleu"])}
        control = (found["how"] == "gates") & (found["lambda"] == 0)
        rows.append(row | difference_cells(found[~control]))
    return pd.DataFrame(rows)
