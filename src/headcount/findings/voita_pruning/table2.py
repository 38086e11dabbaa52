"""Voita's Table 2: BLEU with few heads, fine-tuned from the trained model and from scratch."""

import pandas as pd

from headcount.base.addresses import KINDS
from headcount.base.settings.runs import label
from headcount.base.settings.short_names import decimal
from headcount.findings.cells import NONE, mean_count, mean_sd
from headcount.findings.published import voita
from headcount.findings.published.numbers import beside_ours
from headcount.findings.results import Results
from headcount.findings.run_tables import KEYS
from headcount.findings.scores import Scores
from headcount.findings.tables import Table
from headcount.findings.voita_pruning.heads import PrunedModel
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


def table2(results: Results) -> Table:
    """BLEU with few heads, fine-tuned and from scratch."""
    updates = all_updates(results)
    chosen = chosen_models(pruned_models(results))
    table = few_heads_table(chosen, all_scores(results), updates)
    caption = f"{CAPTION} {updates.describe(chosen)} {describe_scored(results)}"
    return Table(table, few_heads_summary(table), caption)


def chosen_models(models: list[PrunedModel]) -> list[PrunedModel]:
    """The sweep over all kinds, the runs on the encoder alone that have a twin, and the twins."""
    twins = {model.gates for model in models if model.run.method == "scratch"}
    return [
        model
        for model in models
        if model.run.method in _TRAINING and (model.run.scope == "all" or model.gates in twins)
    ]


def few_heads_table(chosen: list[PrunedModel], scores: Scores, updates: Updates) -> pd.DataFrame:
    """A score a row: columns of `COLUMNS`; λ and scope are empty for models that lost no head.

    Training: `none` for the model that was pruned, `trained` after fine-tuning with gates,
    `scratch`; λ in nats per target token and head; `updates` of that training, and
    `updates_before` of the model that it began with. The paper's rows follow, without λ, run, seed,
    updates.
    """
    rows = []
    for model in {model.start: model for model in chosen}.values():
        full = {kind: sum(layers) for kind, layers in model.grid.counts.items()}
        own = {"scope": "", "lambda": "", "start": label(model.run.init_from), "training": "none"}
        own |= {"updates": updates.of(model.start), "updates_before": 0}
        rows += _rows(model.start, own | full, scores)
    for model in chosen:
        run = model.run
        own = {"scope": run.scope, "lambda": run.lambda_, "start": label(run.init_from)}
        own |= {"training": _TRAINING[run.method], "updates": updates.of(model.key)}
        own["updates_before"] = updates.before(model)
        rows += _rows(model.key, own | model.by_kind, scores)
    return pd.DataFrame(rows + _printed(), columns=COLUMNS)


def _rows(key: tuple[str, str, int], facts: dict, scores: Scores) -> list[dict]:
    """One model, a test set a row."""
    head = dict(zip(KEYS, key, strict=True)) | facts
    head["heads_left"] = sum(facts[kind] for kind in KINDS)
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
