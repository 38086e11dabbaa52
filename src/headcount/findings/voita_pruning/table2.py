"""Voita's Table 2: BLEU with few heads, fine-tuned from the trained model and from scratch."""

from collections.abc import Iterator

import pandas as pd

from headcount.base.addresses import KINDS
from headcount.base.settings.runs import RANDOM_WEIGHTS
from headcount.base.settings.short_names import decimal
from headcount.findings import exhibits
from headcount.findings.kinds import SCOPES
from headcount.findings.published import voita
from headcount.findings.published.numbers import with_printed
from headcount.findings.results import KEYS, Results
from headcount.findings.setting import seeds_of, warn_of_unlike_seeds
from headcount.findings.tables import NONE, Table, mean_count, mean_sd
from headcount.findings.voita_pruning import measured
from headcount.findings.voita_pruning.measured import key_of

COLUMNS = [*KEYS, "test_set", "scope", "lambda", "start", "training", "updates", "updates_before"]
COLUMNS += [*KINDS, "heads_left", "bleu", "source", "signature"]
_TRAINING = {"gates": "trained", "scratch": "scratch"}
_GATED = "gates from random weights"


@exhibits.table("voita_table2", needs=("pruned_bleu", "updates"))
def table2(results: Results) -> Table:
    """Table 2: BLEU with few heads."""
    chosen = _chosen(measured.pruned_models(results))
    table = with_printed(_few_heads(results, chosen), _printed())
    return Table(
        table,
        _columns(table),
        "BLEU of models with few heads: fine-tuned with gates from the trained model, and trained "
        "from scratch with exactly the heads that are then left.",
        (
            "Heads: encoder self-attention / decoder self-attention / encoder–decoder attention. "
            "λ = 0 is the control, fine-tuned for as many updates with λ = 0; the model that was "
            "pruned comes first, without a λ. Shown are the sweep over all kinds, and those runs "
            "on the encoder alone that have a twin from scratch.",
            f"Rows whose source is paper: {voita.SOURCE}, Table 2, EN-RU, one run each; it prints "
            "neither λ nor the names of its test sets, and one number for its baseline.",
            voita.BESIDE_OURS,
            *measured.describe_updates(results, chosen),
            *measured.describe_scored(results),
        ),
        (
            *measured.warn_of_updates(results, chosen),
            *warn_of_unlike_seeds(seeds_of(table[table["source"] == "ours"])),
        ),
    )


def _chosen(models: pd.DataFrame) -> pd.DataFrame:
    """The sweep over all kinds, the runs on the encoder alone that have a twin, and the twins."""
    gates = pd.Series(list(zip(models["pair"], models["gates_run"], models["seed"], strict=True)))
    twinned = gates.isin(set(gates[models["how"] == "scratch"]))
    return models[models["how"].isin(_TRAINING) & ((models["scope"] == "all") | twinned)]


def _few_heads(results: Results, chosen: pd.DataFrame) -> pd.DataFrame:
    """A score a row: columns of `COLUMNS`; λ and scope are empty for models that lost no head.

    Training: `none` for the model that was pruned, `trained` after fine-tuning with gates,
    `gates from random weights`, `scratch`; λ in nats per target token and head; `updates` of that
    training, and `updates_before` of the model that it began with.
    """
    grid = results.model.grid
    full = {kind: sum(grid.counts[kind]) for kind in KINDS} | {"heads_left": grid.size}
    models = []
    wholes = measured.with_all_heads(chosen).drop_duplicates(["pair", "start", "seed"])
    for model in wholes.to_dict("records"):
        whole = {"run": model["start"], "scope": "", "lambda": "", "training": "none"}
        models.append(model | whole | full | {"updates_before": 0})
    for model in chosen.to_dict("records"):
        gated = model["how"] == "gates" and model["start"] == RANDOM_WEIGHTS
        anew = gated or model["how"] == "scratch"
        before = 0 if anew else measured.updates_of(results, key_of(model, "start"))
        training = _GATED if gated else _TRAINING[model["how"]]
        models.append(model | {"training": training, "updates_before": before})
    rows = []
    for model in models:
        key = key_of(model)
        model["updates"] = measured.updates_of(results, key)
        for test, bleu, signature in measured.all_scores(results).of(key):
            rows.append(model | {"test_set": test, "bleu": bleu, "signature": signature})
    return pd.DataFrame(rows, columns=COLUMNS)


def _printed() -> pd.DataFrame:
    """The paper's rows, without λ, run, seed, updates."""
    table = voita.table2().rename(columns={"value": "bleu"})
    heads = table["heads"].str.split("/", expand=True).astype(int).set_axis(KINDS, axis=1)
    return table.join(heads).assign(heads_left=heads.sum(axis=1), signature=voita.METRIC)


def _columns(table: pd.DataFrame) -> pd.DataFrame:
    """`_shown`, with a column for gates from random weights where there are any."""
    shown = pd.DataFrame(_shown(table))
    return shown if (table["training"] == _GATED).any() else shown.drop(columns=_GATED)


def _shown(table: pd.DataFrame) -> Iterator[dict[str, str]]:
    """The table as people read it: a row per model and test set, means over seeds."""
    ours, paper = (table[table["source"] == source] for source in ("ours", "paper"))
    for (pair, test), of_test in ours.groupby(["pair", "test_set"], sort=False):
        for names, found in of_test.groupby(["start", "scope", "lambda"], sort=False):
            yield {"pair": pair, "test set": test} | _cells(found, *names)
    for pair, of_pair in paper.groupby("pair", sort=False):
        for _, found in of_pair.groupby(list(KINDS), sort=False):
            yield {"pair": pair, "test set": NONE} | _cells(found, NONE, NONE, "")


def _cells(found: pd.DataFrame, start: str, scope: str, lambda_: float | str) -> dict[str, str]:
    """One model; its heads may differ between seeds."""
    bleu = {name: list(rows) for name, rows in found.groupby("training")["bleu"]}
    kept = found[found["training"] != "scratch"]
    return {
        "start": start,
        "scope": SCOPES.get(scope, NONE),
        "λ": NONE if lambda_ == "" else decimal(lambda_),
        "heads": "/".join(mean_count(kept[kind]) for kind in KINDS),
        "from trained": mean_sd(bleu.get("trained") or bleu.get("none", [])),
        "from scratch": mean_sd(bleu.get("scratch", [])),
        _GATED: mean_sd(bleu.get(_GATED, [])),
        "source": found["source"].iloc[0],
    }
