"""Voita's Table 1 and Figure 4: the best head for each relation, and a positional baseline."""

from functools import cache

import pandas as pd

from headcount.findings import exhibits
from headcount.findings.published import voita
from headcount.findings.published.numbers import with_printed
from headcount.findings.results import KEYS, Results, gather
from headcount.findings.setting import of_one_training
from headcount.findings.significance import mcnemar, wilson
from headcount.findings.tables import NONE, Table, p_value, run_cells
from headcount.findings.voita_roles.labels import SHOWN, SYNTAX, arrow, exceeds
from headcount.findings.voita_roles.measured import all_roles, describe_roles

COLUMNS = [*KEYS, "treebank", "relation", "direction", "layer", "head", "accuracy", "low", "high"]
COLUMNS += ["held_out", "baseline", "margin", "p", "heads_above", "trials", "offset", "source"]
NO_TREES = "not available: no treebank in the source language"
DOBJ = "Universal Dependencies call obj what the paper calls dobj."

CAPTION = (
    "Accuracy of the encoder head that is best for each dependency relation, in per cent: how "
    "often its largest weight is on the word that the relation names. It says something where it "
    "is well above the positional baseline."
)
NOTES = (
    "v: verb, s: subject, o: object, n: noun, a: adjective, adv: adverb; v→s asks from the verb. "
    "In brackets the 95 % Wilson interval, which knows nothing of the choice of the best head. "
    "Held out: the head that is best on every second sentence, judged on the others. Baseline: "
    "always the relation's most frequent relative position, on the same trials. p: two-sided "
    "exact McNemar test against the baseline, small where the head is clearly worse, too, times "
    "the number of encoder heads. Heads above: how many exceed the baseline by the margin.",
    DOBJ,
    f"Rows whose source is paper: {voita.SOURCE}, Table 1, trees predicted by a parser; one "
    "baseline for both directions, no intervals.",
    of_one_training("trials"),
)


@exhibits.table("voita_table1", needs=("roles",), uses=("pruned_heads",))
def table1(results: Results) -> Table:
    """Table 1: the best head for each relation."""
    table, models = best_heads(results), all_roles(results)[KEYS].drop_duplicates()
    trees = "" if (table["source"] == "ours").any() else f"Ours are {NO_TREES}."
    notes = (*NOTES, trees, *describe_roles(results))
    return Table(table, _summary(table, models), CAPTION, notes)


@cache
def best_heads(results: Results) -> pd.DataFrame:
    """The best head of each model, treebank, relation and direction: columns of `COLUMNS`.

    Shares are 0 to 1, offsets are of the baseline, layer and head count from 0. The paper's rows
    have no run, seed or head.
    """
    syntax, settings = gather(results.files("syntax"), SYNTAX), results.settings["roles"]
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
            | {"margin": best["value"] - baseline, "p": p, "heads_above": above}
        )
    printed = voita.dependency_scores()
    printed["margin"] = printed["accuracy"] - printed["baseline"]
    return with_printed(pd.DataFrame(rows, columns=COLUMNS), printed)


def _summary(table: pd.DataFrame, models: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per model, treebank, relation and direction.

    `models` has pair, run and seed of every model; one without trees has a row that says so.
    """
    ours = table[table["source"] == "ours"]
    measured = list(ours[KEYS].itertuples(index=False, name=None))
    rows = [_readable(row) for row in table.to_dict("records")]
    blank = dict.fromkeys(rows[-1], NONE) | {"trees": "none", "best head": "not available"}
    without = [key for key in models.itertuples(index=False, name=None) if key not in measured]
    others = [blank | run_cells(*key) | {"source": "ours"} for key in without]
    return pd.DataFrame(rows[: len(measured)] + others + rows[len(measured) :])


def _readable(row: dict) -> dict[str, str]:
    ours = row["source"] == "ours"
    spread = f" ({row['low']:.0%} to {row['high']:.0%})".replace("%", "") if ours else ""
    relation = SHOWN.get(row["relation"], row["relation"])
    return (
        run_cells(row["pair"], row["run"] or NONE, row["seed"])
        | {"trees": row["treebank"] or NONE, "relation": relation}
        | {"direction": arrow(row["relation"], row["direction"])}
        | {"best head": f"{100 * row['accuracy']:.0f}{spread}"}
        | {"held out": NONE if row["held_out"] == "" else f"{100 * row['held_out']:.0f}"}
        | {"baseline": f"{100 * row['baseline']:.0f}", "margin": f"{100 * row['margin']:+.0f}"}
        | {"p": p_value(row["p"]), "heads above": str(row["heads_above"]) or NONE}
        | {"trials": str(row["trials"]) or NONE, "source": row["source"]}
    )


def _held_out(of_test: pd.DataFrame) -> float | str:
    """Accuracy, on the other sentences, of the head that is best on every second one."""
    chosen = of_test.loc[of_test["half_hits"].idxmax()]
    trials = chosen["trials"] - chosen["half_trials"]
    return float((chosen["hits"] - chosen["half_hits"]) / trials) if trials else ""
