"""What the tables and figures of roles share: every head measured, and words on how."""

from functools import cache
from pathlib import Path

import pandas as pd

from headcount.base.settings.lrp import LrpSettings
from headcount.base.settings.roles import RolesSettings
from headcount.base.settings.runs import label
from headcount.findings.results import Results
from headcount.findings.run_tables import HEAD, KEYS, gather, read_runs_of
from headcount.findings.setting import describe_setting
from headcount.findings.voita_roles.labels import HEAD_KEYS, SYNTAX, VALUES, read_roles, wide

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
    whose scope has it. `kept` are the heads.csv of pruned runs, `runs` the run.json beside them;
    others than gates are passed over. Raises UserError for a heads.csv of a run without its own.
    """
    rows = gather(kept, VALUES)
    found = rows["run"].map(read_runs_of(kept, runs))
    counted = [
        name == "gate" and run.method == "gates" and run.lambda_ > 0 and kind in run.kinds
        for name, run, kind in zip(rows["statistic"], found, rows["kind"], strict=True)
    ]
    rows["run"] = [label(run.init_from) for run in found]
    rows["survival"] = (rows["value"] != 0).astype(float)
    in_scope = rows[pd.Series(counted, dtype=bool)]
    return in_scope.groupby(HEAD_KEYS, sort=False)["survival"].mean().reset_index()


def roles_table(
    heads: pd.DataFrame, relevance: pd.DataFrame, importance: pd.DataFrame, survival: pd.DataFrame
) -> pd.DataFrame:
    """A head a row: columns of `COLUMNS`; rank is by size of relevance within the layer, from 1.

    `heads` comes from `read_roles`, `relevance` and `importance` from `wide`, `survival` from
    `gate_survival`; cells are empty where a number was not measured.
    """
    found = heads.merge(relevance, "left", HEAD_KEYS).merge(importance, "left", HEAD_KEYS)
    found = found.merge(survival, "left", HEAD_KEYS)
    sizes = found["relevance"].abs()  # the ratio rule has signs
    by_layer = sizes.groupby([found[name] for name in (*KEYS, "kind", "layer")], sort=False)
    found["rank"] = by_layer.rank(ascending=False, method="first").astype(int)
    found["model"] = found.groupby(KEYS, sort=False).ngroup()
    found = found.sort_values(["model", "layer", "rank"], ignore_index=True)[COLUMNS]
    return found.astype(object).where(found.notna(), "")
