"""Voita's Table 2: BLEU with few heads, fine-tuned from the trained model and from scratch."""

import pandas as pd

from headcount.base.addresses import KINDS, HeadGrid
from headcount.base.settings.short_names import decimal
from headcount.findings import exhibits
from headcount.findings.cells import NONE, mean_count, mean_sd
from headcount.findings.published import voita
from headcount.findings.published.numbers import beside_ours
from headcount.findings.results import Results
from headcount.findings.run_tables import KEYS
from headcount.findings.scores import Key, Scores
from headcount.findings.tables import Table
from headcount.findings.voita_pruning.heads import key_of
from headcount.findings.voita_pruning.measured import (
    all_scores,
    all_updates,
    describe_scored,
    pruned_models,
)
from headcount.findings.voita_pruning.updates import Updates

COLUMNS = [*KEYS, "test_set", "scope", "lambda", "start", "training", "updates", "updates_before"]
COLUMNS += [*KINDS, "heads_left", "bleu", "source", "signature"]
_TRAINING = {"gates": "trained", "scratch": "scratch"}

CAPTION = (
    "BLEU of models with few heads: fine-tuned with gates from the trained model, and trained from "
    "scratch with exactly the heads that are then left. Heads: encoder self-attention / decoder "
    "self-attention / decoder-encoder attention. λ = 0 is the control, fine-tuned for as many "
    "updates with λ = 0; the model that was pruned comes first, without a λ. Shown "
    "are the sweep over all kinds, and those runs on the encoder alone that have a twin from "
    f"scratch. Rows whose source is paper: {voita.source()}, Table 2, EN-RU, one run each; it "
    "prints neither λ nor the names of its test sets, and one number for its baseline. "
    f"{beside_ours(voita.metric())}"
)


@exhibits.table("voita_table2", "Table 2: BLEU with few heads", needs=("pruned_bleu", "updates"))
def table2(results: Results) -> Table:
    """BLEU with few heads, fine-tuned and from scratch."""
    updates, chosen = all_updates(results), chosen_models(pruned_models(results))
    table = few_heads_table(chosen, results.model.grid, all_scores(results), updates)
    caption = f"{CAPTION} {updates.describe(chosen)} {describe_scored(results)}"
    return Table(table, few_heads_summary(table), caption)


def chosen_models(models: pd.DataFrame) -> pd.DataFrame:
    """The sweep over all kinds, the runs on the encoder alone that have a twin, and the twins.

    `models` comes from `read_pruned`.
    """
    gates = pd.Series(list(zip(models["pair"], models["gates_run"], models["seed"], strict=True)))
    twinned = gates.isin(set(gates[models["how"] == "scratch"]))
    return models[models["how"].isin(_TRAINING) & ((models["scope"] == "all") | twinned)]


def few_heads_table(
    chosen: pd.DataFrame, grid: HeadGrid, scores: Scores, updates: Updates
) -> pd.DataFrame:
    """A score a row: columns of `COLUMNS`; λ and scope are empty for models that lost no head.

    `chosen` comes from `chosen_models`, `grid` has the heads of the models that were pruned.
    Training: `none` for the model that was pruned, `trained` after fine-tuning with gates,
    `scratch`; λ in nats per target token and head; `updates` of that training, and
    `updates_before` of the model that it began with. The paper's rows follow, without λ, run, seed,
    updates.
    """
    rows = []
    full = {kind: sum(grid.counts[kind]) for kind in KINDS}
    for model in chosen.drop_duplicates(["pair", "start", "seed"]).to_dict("records"):
        cells = {"start": model["start"], "scope": "", "lambda": "", "training": "none"}
        cells |= {"updates_before": 0, "heads_left": grid.size} | full
        rows += _rows(key_of(model, "start"), cells, scores, updates)
    for model in chosen.to_dict("records"):
        training = _TRAINING[model["how"]]
        before = 0 if training == "scratch" else updates.of(key_of(model, "start"))
        cells = model | {"training": training, "updates_before": before}
        rows += _rows(key_of(model), cells, scores, updates)
    return pd.DataFrame(rows + _printed(), columns=COLUMNS)


def _rows(key: Key, facts: dict, scores: Scores, updates: Updates) -> list[dict]:
    """One model, a test set a row."""
    head = facts | dict(zip(KEYS, key, strict=True)) | {"updates": updates.of(key)}
    return [
        head | {"test_set": test, "bleu": bleu, "source": "ours", "signature": signature}
        for test, bleu, signature in scores.of(key)
    ]


def _printed() -> list[dict]:
    rows = []
    for row in voita.table2().itertuples():
        counts = [int(count) for count in row.heads.split("/")]
        rows.append(
            dict.fromkeys(COLUMNS, "")
            | dict(zip(KINDS, counts, strict=True))
            | {"pair": row.pair, "training": row.training, "heads_left": sum(counts)}
            | {"bleu": row.value, "source": "paper", "signature": voita.metric()}
        )
    return rows


def few_heads_summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per model and test set, means over seeds."""
    rows = []
    ours, paper = (table[table["source"] == source] for source in ("ours", "paper"))
    for (pair, test), of_test in ours.groupby(["pair", "test_set"], sort=False):
        for names, found in of_test.groupby(["start", "scope", "lambda"], sort=False):
            rows.append({"pair": pair, "test set": test} | _shown(found, *names))
    for pair, of_pair in paper.groupby("pair", sort=False):
        for _, found in of_pair.groupby(list(KINDS), sort=False):
            rows.append({"pair": pair, "test set": NONE} | _shown(found, NONE, NONE, ""))
    return pd.DataFrame(rows)


def _shown(found: pd.DataFrame, start: str, scope: str, lambda_: float | str) -> dict[str, str]:
    """One model; its heads may differ between seeds."""
    bleu = {name: list(rows) for name, rows in found.groupby("training")["bleu"]}
    kept = found[found["training"] != "scratch"]
    return {
        "start": start,
        "scope": scope or NONE,
        "λ": NONE if lambda_ == "" else decimal(lambda_),
        "heads": "/".join(mean_count(kept[kind]) for kind in KINDS),
        "from trained": mean_sd(bleu.get("trained") or bleu.get("none", [])),
        "from scratch": mean_sd(bleu.get("scratch", [])),
        "source": found["source"].iloc[0],
    }
