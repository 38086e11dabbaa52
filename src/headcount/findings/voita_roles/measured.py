"""What the tables and figures of roles share: every head measured, and words on how."""

from functools import cache
from pathlib import Path

import pandas as pd

from headcount.base.settings.lrp import LrpSettings
from headcount.base.settings.roles import RolesSettings
from headcount.base.settings.runs import PrunedSettings, label
from headcount.findings.results import Results
from headcount.findings.run_tables import HEAD, KEYS, gather, read_runs, run_of
from headcount.findings.setting import describe_setting
from headcount.findings.voita_roles.labels import SYNTAX, VALUES, read_roles

RELEVANCE = ["relevance", "relevance_low", "relevance_high"]
NUMBERS = [*RELEVANCE, "confidence", "entropy"]
NUMBERS += ["rare_rarest", "rare_two_rarest", "rare_two_rarest_chance", "importance", "survival"]
COLUMNS = [*KEYS, *HEAD, "rank", "function", *NUMBERS, "offset", "share"]


@cache
def trained_heads(results: Results) -> pd.DataFrame:
    """Every encoder head of every trained model, and what it does; see `read_roles`."""
    files = (results.files(kind) for kind in ("attention", "positions", "syntax"))
    return read_roles(*files, results.settings["roles"])


@cache
def survival(results: Results) -> pd.DataFrame:
    """How often the heads of trained models were left; see `gate_survival`."""
    return gate_survival(results.files("kept"), results.files("pruned_runs"))


@cache
def head_values(results: Results, kind: str) -> pd.DataFrame:
    """Rows of importance, relevance or attention of every head: run, head, statistic, value."""
    return gather(results.files(kind), VALUES)


@cache
def syntax(results: Results) -> pd.DataFrame:
    """How often every head found every relation."""
    return gather(results.files("syntax"), SYNTAX)


@cache
def all_roles(results: Results) -> pd.DataFrame:
    """Every encoder head with its numbers and its rank; see `roles_table`."""
    relevance = wide(head_values(results, "relevance"), RELEVANCE)
    importance = wide(head_values(results, "importance"), ["importance"])
    return roles_table(trained_heads(results), relevance, importance, survival(results))


def describe_roles(results: Results) -> str:
    """How roles were measured, and the models, in words for captions."""
    settings: RolesSettings = results.settings["roles"]
    lrp: LrpSettings = results.settings["lrp"]
    margin = f"{100 * settings.margin:g} "
    margin += "points" if settings.margin_kind == "absolute" else "per cent of it"
    signed = ", signed, ranked and compared by its size" if lrp.rule == "ratio" else ""
    return (
        f"Measured on the first {settings.sentences} sentences of dev and of each treebank; "
        f"EOS: {settings.eos.replace('_', ' ')}. Positional: {settings.positional_share:.0%} "
        f"of largest weights at one relative position. Syntactic: {margin} above the "
        f"baseline. Rare: {settings.rare_share:.0%} at the two rarest subwords. Relevance: "
        f"{lrp.rule.replace('_', '-')} rule{signed}, up to {lrp.max_sentences} sentences. "
        f"{describe_setting(results, all_roles(results))}"
    )


def gate_survival(kept: list[Path], runs: list[Path]) -> pd.DataFrame:
    """A head a row: pair, run, seed (of the model that was pruned), kind, layer, head, survival.

    Survival is the share, 0 to 1, of the gates runs with λ above 0 that leave the head, among those
    whose scope has it. `kept` are the heads.csv of pruned runs, `runs` the run.json
    beside them; others than gates are passed over.
    """
    rows, known = [], read_runs(runs)
    for path in kept:
        pair, name, seed = run_of(path)
        run = known[name]
        if run.method == "gates" and run.lambda_ > 0:
            rows.append(_kept(path, run).assign(pair=pair, run=label(run.init_from), seed=seed))
    if not rows:
        return pd.DataFrame(columns=[*KEYS, *HEAD, "survival"]).astype({"survival": float})
    every = pd.concat(rows, ignore_index=True)
    found = every.groupby([*KEYS, *HEAD], sort=False)["value"].mean()
    return found.rename("survival").reset_index()


def _kept(path: Path, run: PrunedSettings) -> pd.DataFrame:
    gates = gather([path], [*HEAD, "statistic", "value"])
    in_scope = gates[(gates["statistic"] == "gate") & gates["kind"].isin(run.kinds)]
    return in_scope[HEAD].assign(value=(in_scope["value"] != 0).astype(float))


def wide(rows: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Statistics by name, a head a row: pair, run, seed, kind, layer, head, then the names."""
    chosen = rows[rows["statistic"].isin(names)]
    table = chosen.pivot_table(
        index=[*KEYS, *HEAD], columns="statistic", values="value", sort=False
    )
    return table.reset_index().rename_axis(columns=None).reindex(columns=[*KEYS, *HEAD, *names])


def roles_table(
    heads: pd.DataFrame, relevance: pd.DataFrame, importance: pd.DataFrame, survival: pd.DataFrame
) -> pd.DataFrame:
    """A head a row: columns of `COLUMNS`; rank is by size of relevance within the layer, from 1.

    `heads` comes from `read_roles`, `relevance` and `importance` from `wide`, `survival` from
    `gate_survival`; cells are empty where a number was not measured.
    """
    keys = [*KEYS, *HEAD]
    found = heads.merge(relevance, "left", keys).merge(importance, "left", keys)
    found = found.merge(survival, "left", keys)
    sizes = found["relevance"].abs()  # the ratio rule has signs
    by_layer = sizes.groupby([found[name] for name in (*KEYS, "kind", "layer")], sort=False)
    found["rank"] = by_layer.rank(ascending=False, method="first").astype(int)
    found = found.sort_values([*KEYS, "layer", "rank"], key=_order(found), kind="stable")
    found = found.reindex(columns=COLUMNS).reset_index(drop=True)
    return found.astype(object).where(found.notna(), "")


def _order(table: pd.DataFrame):
    """Sorting key that keeps pairs and runs in the order in which they come."""
    places = {name: {v: n for n, v in enumerate(table[name].unique())} for name in ("pair", "run")}
    return lambda column: column.map(places[column.name]) if column.name in places else column
