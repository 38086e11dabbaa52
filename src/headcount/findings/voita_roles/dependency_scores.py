"""Voita's Table 1 and Figure 4: the best head for each relation, and a positional baseline."""

from functools import cache

import pandas as pd

from headcount.base.settings.roles import RolesSettings
from headcount.findings import exhibits
from headcount.findings.cells import NONE, p_value
from headcount.findings.published import voita
from headcount.findings.results import Results
from headcount.findings.run_tables import KEYS
from headcount.findings.setting import of_one_training
from headcount.findings.significance import mcnemar, wilson
from headcount.findings.tables import Table
from headcount.findings.voita_roles.labels import SHOWN, arrow, exceeds
from headcount.findings.voita_roles.measured import all_roles, describe_roles, syntax

COLUMNS = [*KEYS, "treebank", "relation", "direction", "layer", "head", "accuracy", "low", "high"]
COLUMNS += ["held_out", "baseline", "margin", "p", "heads_above", "trials", "offset", "source"]
NO_TREES = "not available: no treebank in the source language"

CAPTION = (
    "Accuracy of the encoder head that is best for each dependency relation, in per cent: how "
    "often its largest weight is on the word that the relation names. v: verb, s: subject, o: "
    "object, n: noun, a: adjective, adv: adverb; v→s asks from the verb. In brackets the 95 % "
    "Wilson interval, which knows nothing of the choice of the best head. Held out: the head "
    "that is best on every second sentence, judged on the others. Baseline: always the "
    "relation's most frequent relative position, on the same trials. p: exact McNemar test against "
    "the baseline, times the number of encoder heads. Heads above: how many exceed the baseline by "
    "the margin. Universal Dependencies call obj what the paper calls dobj. Rows whose source is "
    f"paper: {voita.source()}, Table 1, trees predicted by a parser; one baseline for both "
    f"directions, no intervals. {of_one_training('trials')}"
)


@exhibits.table(
    "voita_table1",
    "Table 1: the best head for each relation",
    needs=("roles",),
    uses=("pruned_runs", "kept"),
)
def table1(results: Results) -> Table:
    """The best head for each relation."""
    table, models = best_heads(results), all_roles(results)[KEYS].drop_duplicates()
    trees = "" if len(syntax(results)) else f" Ours are {NO_TREES}."
    caption = f"{CAPTION}{trees} {describe_roles(results)}"
    return Table(table, dependency_summary(table, models), caption)


@cache
def best_heads(results: Results) -> pd.DataFrame:
    """The best head for each relation; see `dependency_table`."""
    return dependency_table(syntax(results), results.settings["roles"])


def dependency_table(syntax: pd.DataFrame, settings: RolesSettings) -> pd.DataFrame:
    """The best head of each model, treebank, relation and direction: columns of `COLUMNS`.

    `syntax` has the rows of syntax.csv with pair, run and seed. Shares are 0 to 1, offsets are of
    the baseline, layer and head count from 0. The paper's rows have no run, seed or head.
    """
    rows = []
    keys = [*KEYS, "treebank", "relation", "direction"]
    for names, of_test in syntax.groupby(keys, sort=False):
        best = of_test.loc[of_test["hits"].idxmax()].to_dict()
        low, high = wilson(best["hits"], best["trials"])
        baseline = best["baseline_hits"] / best["trials"]
        above = sum(exceeds(row, settings) for row in of_test.to_dict("records"))
        p = min(1.0, len(of_test) * mcnemar(best["head_only"], best["baseline_only"]))
        rows.append(
            dict(zip(keys, names, strict=True))
            | {name: best[name] for name in ("layer", "head", "trials", "offset")}
            | {"accuracy": best["value"], "low": low, "high": high, "baseline": baseline}
            | {"held_out": _held_out(of_test)}
            | {"margin": best["value"] - baseline, "p": p, "heads_above": above, "source": "ours"}
        )
    return pd.DataFrame(rows + _printed(), columns=COLUMNS)


def dependency_summary(table: pd.DataFrame, models: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per model, treebank, relation and direction.

    `models` has pair, run and seed of every model; one without trees has a row that says so.
    """
    ours = table[table["source"] == "ours"]
    measured = set(ours[KEYS].itertuples(index=False, name=None))
    others = [key for key in models[KEYS].itertuples(index=False, name=None) if key not in measured]
    rows = [_readable(row) for row in ours.to_dict("records")] + [_without(key) for key in others]
    rows += [_readable(row) for row in table[table["source"] != "ours"].to_dict("records")]
    return pd.DataFrame(rows, columns=list(rows[-1]))


def _readable(row: dict) -> dict[str, str]:
    ours = row["source"] == "ours"
    spread = f" ({row['low']:.0%} to {row['high']:.0%})".replace("%", "") if ours else ""
    return (
        {"pair": row["pair"], "run": row["run"] or NONE, "seed": str(row["seed"]) or NONE}
        | {"trees": row["treebank"] or NONE, "relation": _shown(row["relation"])}
        | {"direction": arrow(row["relation"], row["direction"])}
        | {"best head": f"{100 * row['accuracy']:.0f}{spread}"}
        | {"held out": NONE if row["held_out"] == "" else f"{100 * row['held_out']:.0f}"}
        | {"baseline": f"{100 * row['baseline']:.0f}", "margin": f"{100 * row['margin']:+.0f}"}
        | {"p": p_value(row["p"]), "heads above": str(row["heads_above"]) or NONE}
        | {"trials": str(row["trials"]) or NONE, "source": row["source"]}
    )


def _without(key: tuple) -> dict[str, str]:
    """The row of a model without trees."""
    cells = dict.fromkeys(("relation", "direction"), NONE) | {"best head": "not available"}
    cells |= dict.fromkeys(("held out", "baseline", "margin", "p", "heads above", "trials"), NONE)
    pair, run, seed = key
    names = {"pair": pair, "run": run, "seed": str(seed), "trees": "none"}
    return names | cells | {"source": "ours"}


def _shown(relation: str) -> str:
    return SHOWN.get(relation, relation)


def _held_out(of_test: pd.DataFrame) -> float | str:
    """Accuracy, on the other sentences, of the head that is best on every second one."""
    chosen = of_test.loc[of_test["half_hits"].idxmax()]
    trials = chosen["trials"] - chosen["half_trials"]
    return float((chosen["hits"] - chosen["half_hits"]) / trials) if trials else ""


def _printed() -> list[dict]:
    scores = voita.dependency_scores()
    rows = []
    for pair, of_pair in scores.groupby("pair", sort=False):
        keys = ["relation", "direction"]
        both = of_pair.pivot_table(index=keys, columns="of", values="value", sort=False)
        for (relation, direction), row in both.iterrows():
            rows.append(
                dict.fromkeys(COLUMNS, "")
                | {"pair": pair, "relation": relation, "direction": direction, "source": "paper"}
                | {"accuracy": row["best"], "baseline": row["baseline"]}
                | {"margin": row["best"] - row["baseline"]}
            )
    return rows
