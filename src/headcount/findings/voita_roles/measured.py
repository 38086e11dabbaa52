"""Every encoder head: the table of all of them, what other exhibits share, and words on how."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pandas as pd

from headcount.base.settings.importance import LrpSettings
from headcount.base.settings.roles import RolesSettings
from headcount.base.settings.runs import PrunedSettings
from headcount.findings import exhibits
from headcount.findings.results import HEAD, KEYS, Results, at_start, gather, read_runs_of
from headcount.findings.setting import describe_setting, of_one_training
from headcount.findings.tables import NONE, Table, fill_empty, with_bounds
from headcount.findings.voita_roles.labels import HEAD_KEYS, VALUES, read_roles, wide

RELEVANCE = ["relevance", "relevance_low", "relevance_high"]
NUMBERS = [*RELEVANCE, "confidence", "entropy"]
NUMBERS += ["rare_rarest", "rare_two_rarest", "rare_two_rarest_chance", "importance", "survival"]
COLUMNS = [*KEYS, *HEAD, "rank", "function", *NUMBERS, "offset", "share"]

CAPTION = (
    "Every encoder head of every trained model, layer by layer, the most relevant first. Its "
    "function, if any, goes by where it looks."
)
NOTES = (
    "Function: relative position of the token it points at, if nearly always the same; relations "
    "for which it exceeds the positional baseline by the margin; rare, if it points at the rarest "
    "words. Relevance: share of its layer by relevance propagation, with its 95 % bootstrap "
    "interval over sentences. Confidence: mean largest weight. Position: where it points most "
    "often, and in what share of cases. Rarest, two rarest: share of largest weights there. "
    "Importance: nats per sentence unless the settings say otherwise. Survives: in how many of "
    "the gates runs on this model with λ above 0.",
    of_one_training("sentences"),
)


@exhibits.table("voita_roles", needs=("roles",), uses=("pruned_heads",))
def roles(results: Results) -> Table:
    """Every encoder head."""
    table = all_roles(results)
    shown = pd.DataFrame(map(_readable, table.to_dict("records")))
    return Table(table, shown, CAPTION, (*NOTES, *describe_roles(results)))


def _readable(row: dict) -> dict:
    """A head as people read it."""
    ends = (row["relevance_low"], row["relevance_high"])
    near = f"{row['offset']:+d}" if row["offset"] else "0"
    near = NONE if row["offset"] == "" else f"{near} ({_percent(row['share'])})"
    return (
        {name: row[name] for name in (*KEYS, "layer", "head")}
        | {"function": row["function"] or NONE}
        | {"relevance": with_bounds(row["relevance"], *ends, digits=3)}
        | {name: with_bounds(row[name], "", "") for name in ("confidence", "entropy")}
        | {"position": near, "rarest": _percent(row["rare_rarest"])}
        | {"two rarest": _percent(row["rare_two_rarest"])}
        | {"importance": with_bounds(row["importance"], "", "")}
        | {"survives": _percent(row["survival"])}
    )


def _percent(value: float | str) -> str:
    return NONE if value == "" else f"{value:.0%}".replace("%", " %")


@cache
def trained_heads(results: Results) -> pd.DataFrame:
    """Every encoder head of every trained model, and what it does; see `read_roles`."""
    files = (results.files(kind) for kind in ("attention", "positions", "syntax"))
    return read_roles(*files, results.settings["roles"])


@cache
def head_values(results: Results, kind: str) -> pd.DataFrame:
    """Rows of importance, relevance or attention of every head: run, head, statistic, value."""
    return gather(results.files(kind), VALUES)


@cache
def all_roles(results: Results) -> pd.DataFrame:
    """A head a row: columns of `COLUMNS`; cells are empty where a number was not measured.

    Rank is by size of relevance within the layer, from 1.
    """
    relevance = wide(head_values(results, "relevance"), RELEVANCE)
    importance = wide(head_values(results, "importance"), ["importance"])
    survival = gate_survival(results.files("kept"), results.files("pruned_runs"))
    found = trained_heads(results)
    for other in (relevance, importance, survival):
        found = found.merge(other, "left", HEAD_KEYS)
    sizes = found["relevance"].abs()  # the ratio rule has signs
    by_layer = sizes.groupby([found[name] for name in (*KEYS, "kind", "layer")], sort=False)
    found["rank"] = by_layer.rank(ascending=False, method="first").astype(int)
    found["model"] = found.groupby(KEYS, sort=False).ngroup()
    found = found.sort_values(["model", "layer", "rank"], ignore_index=True)
    return fill_empty(found[COLUMNS])


def describe_roles(results: Results) -> tuple[str, ...]:
    """How roles were measured, and the models, in words for notes."""
    settings: RolesSettings = results.settings["roles"]
    lrp: LrpSettings = results.settings["lrp"]
    margin = f"{100 * settings.margin:g} "
    margin += "points" if settings.margin_kind == "absolute" else "per cent of it"
    signed = ", signed, ranked and compared by its size" if lrp.rule == "ratio" else ""
    return (
        f"Measured on up to the first {settings.sentences} sentences of dev and of each treebank; "
        f"EOS: {settings.eos.replace('_', ' ')}. Positional: {settings.positional_share:.0%} of "
        f"largest weights at one relative position. Syntactic: {margin} above the baseline. Rare: "
        f"{settings.rare_share:.0%} at the two rarest subwords. Relevance: "
        f"{lrp.rule.replace('_', '-')} rule{signed}, up to {lrp.max_sentences} sentences.",
        *describe_setting(results, all_roles(results)),
    )


def gate_survival(kept: list[Path], runs: list[Path]) -> pd.DataFrame:
    """In what share of the gates runs with λ above 0 each head is left, see `_survival`.

    Gates from random weights are passed over: they prune no model.
    """
    return _survival(kept, runs, lambda run: run.method == "gates" and run.lambda_ > 0)


def subset_survival(kept: list[Path], runs: list[Path]) -> pd.DataFrame:
    """In what share of the runs that keep exactly K heads each head is left, see `_survival`."""
    return _survival(kept, runs, lambda run: run.method == "subset")


def _survival(
    kept: list[Path], runs: list[Path], counts: Callable[[PrunedSettings], bool]
) -> pd.DataFrame:
    """A head a row: pair, run, seed (of the model that was pruned), kind, layer, head, survival.

    Survival is the share, 0 to 1, of the runs that count and leave the head, among those whose
    scope has it. `kept` are the heads.csv of pruned runs, `runs` the run.json beside them. Raises
    UserError for a heads.csv of a run without its own run.json.
    """
    rows = gather(kept, VALUES)
    found = rows["run"].map(read_runs_of(kept, runs))
    counted = [
        name == "gate" and counts(run) and kind in run.kinds
        for name, run, kind in zip(rows["statistic"], found, rows["kind"], strict=True)
    ]
    in_scope = at_start(rows[pd.Series(counted, dtype=bool)], found)
    in_scope = in_scope.assign(survival=(in_scope["value"] != 0).astype(float))
    return in_scope.groupby(HEAD_KEYS, sort=False)["survival"].mean().reset_index()
