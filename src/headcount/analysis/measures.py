"""Measures of heads, as `measures.yaml` lists them, and the roles of encoder heads.

Functions of measures return pair, run, seed, the address of a head and `value`. Column `of` names
the relation or run where a head has several values, and `note` is a text beside the value.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from headcount.analysis import read_beside
from headcount.analysis.collapse import frequencies, with_updates
from headcount.analysis.frames import HEAD, RUN, Data, Runs
from headcount.base.settings.heads import RolesSettings
from headcount.base.settings.runs import RANDOM_WEIGHTS
from headcount.base.settings.section import Section
from headcount.data.lines import clean_lines

KEYS = [*RUN, *HEAD]
ATTENTION = ["confidence", "entropy", "rare_rarest", "rare_two_rarest", "rare_two_rarest_chance"]
CONTENT_WORDS = "over content words"  # note of a value

_ENDS = {"nsubj": ("v", "s"), "obj": ("v", "o"), "amod": ("n", "a"), "advmod": ("v", "adv")}
_ROUNDING = 1e-9  # counts decide, not rounding


def arrow(relation: str, direction: str) -> str:
    """Return the notation of Voita et al.: `v→s` looks from the verb to its subject."""
    governor, dependent = _ENDS.get(relation, ("head", relation))
    ends = (governor, dependent) if direction == "to_dependent" else (dependent, governor)
    return "→".join(ends)


def classes(function: str | float) -> list[str]:
    """Return the kinds of a head's labels: `positional`, `rare`, `syntactic`."""
    labels = set(function.split(", ")) if isinstance(function, str) else set()
    positional = {label for label in labels if label.lstrip("+-").isdigit()}
    others = {"rare": "rare" in labels, "syntactic": bool(labels - positional - {"rare"})}
    return [name for name, has in ({"positional": bool(positional)} | others).items() if has]


def encoder_roles(data: Data) -> pd.DataFrame:
    """Return statistics and labels of the encoder heads of trained models, then of pruned ones."""
    heads, places, relations = (
        pd.concat([data.load(kind), data.load(f"pruned_{kind}")], ignore_index=True)
        for kind in ("attention", "positions", "syntax")
    )
    settings: RolesSettings = data.settings["roles"]
    most = preferred(places).rename(columns={"value": "share"})[[*KEYS, "offset", "share"]]
    heads = without_sinks(heads[heads["kind"] == "enc_self"])
    table = wide(heads, [*ATTENTION, "content"]).merge(most, "left", KEYS)
    table = table.merge(_relations(relations, settings), "left", KEYS)
    positional = table["share"] >= settings.positional_share
    rare = table["rare_two_rarest"] >= settings.rare_share
    offsets = table["offset"].map("{:+.0f}".format).where(positional)
    labels = zip(offsets, table.pop("relations"), rare.map({True: "rare"}), strict=True)
    functions = [", ".join(label for label in row if pd.notna(label)) or None for row in labels]
    return table.assign(function=pd.Series(functions, dtype="str"))


def wide(values: pd.DataFrame, statistics: list[str]) -> pd.DataFrame:
    """Return statistics of heads as columns, a head in each row, missing where there is none."""
    rows = values[values["statistic"].isin(statistics)].astype({"value": float})
    table = rows.pivot_table("value", KEYS, "statistic", sort=False).reset_index()
    return table.rename_axis(columns=None).reindex(columns=[*KEYS, *statistics])


def without_sinks(values: pd.DataFrame) -> pd.DataFrame:
    """Return statistics of heads, over content words for heads that `content` marks. Adds `note`.

    These heads have more than half of their attention on special tokens.
    """
    values = values.astype({"value": float})
    marked = values.loc[(values["statistic"] == "content") & (values["value"] == 1), KEYS]
    words = values[values["statistic"].str.endswith("_content")].merge(marked)
    words["statistic"] = words["statistic"].str.removesuffix("_content")
    words = words.rename(columns={"value": "_words"})[[*KEYS, "statistic", "_words"]]
    rows = values.merge(words, "left")
    words = rows.pop("_words")
    notes = words.notna().map({True: CONTENT_WORDS})
    return rows.assign(value=words.fillna(rows["value"]), note=notes)


def preferred(positions: pd.DataFrame, statistic: str = "") -> pd.DataFrame:
    """Return the row of every head's preferred position, by a `statistic` or `counted` rows."""
    if statistic:
        rows = positions[positions["statistic"] == statistic]
    else:
        rows = positions[positions.reindex(columns=["counted"])["counted"].ne(0)]
    return rows.loc[rows.groupby(KEYS, sort=False)["hits"].idxmax()]


def exceeds(syntax: pd.DataFrame, settings: RolesSettings) -> pd.Series:
    """Return whether the accuracy of heads exceeds the positional baseline by the margin."""
    baseline = syntax["baseline_hits"] / syntax["trials"]
    return syntax["hits"] / syntax["trials"] >= baseline + settings.margin - _ROUNDING


def read_sentences(path: Path) -> list[dict[str, Any]]:
    """Return the sentences of a model with the attention of all heads, see `heads/roles.py`."""
    return [json.loads(line) for line in clean_lines(path)]


def on_first_treebank(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the first treebank of every model."""
    first = rows.groupby(RUN, sort=False)["treebank"].transform("first")
    return rows[rows["treebank"] == first]


def _relations(syntax: pd.DataFrame, settings: RolesSettings) -> pd.DataFrame:
    """Return the relations of heads that exceed the baseline on the first treebank."""
    rows = on_first_treebank(syntax)
    rows = rows[exceeds(rows, settings)]
    rows = rows.assign(relations=list(map(arrow, rows["relation"], rows["direction"])))
    return rows.groupby(KEYS, sort=False)["relations"].agg(", ".join).reset_index()


class Measure(Section):
    """One number that a head has."""

    title: str
    unit: str
    more: str  # meaning of a larger value
    source: str  # files that have it
    group: str = "What it is worth"
    around_zero: bool = False  # values above and below 0 mean opposite things
    size: bool = False  # the sign does not matter, so that it is removed
    compared: bool = False  # larger means more important, and table voita_agreement has it
    function: str = ""  # of this module; without one, the measure is a statistic of a file
    arguments: dict[str, str] = {}


# All measures by name, in the order of tables.
MEASURES = read_beside(__file__, dict[str, Measure])


def statistics(data: Data) -> pd.DataFrame:
    """Return the measures that are statistics of files, with the column `measure`."""
    kinds = ("measures", "loss_change", "more_measures", "pruned_attention")
    rows = pd.concat(map(data.load, kinds), ignore_index=True)
    rows = without_sinks(rows).rename(columns={"statistic": "measure"})
    rows = rows[rows["measure"].isin([name for name, m in MEASURES.items() if not m.function])]
    sizes = rows["measure"].isin([name for name, m in MEASURES.items() if m.size])
    return rows.assign(value=rows["value"].mask(sizes, rows["value"].abs()))


def all_measures(data: Data) -> pd.DataFrame:
    """Return all measures of the heads of trained and pruned models, a value in each row."""
    parts = [statistics(data)]
    for name, measure in MEASURES.items():
        if measure.function:
            function = getattr(sys.modules[__name__], measure.function)
            parts.append(data.call(function, measure.arguments).assign(measure=name))
    filled = [part for part in parts if len(part)]
    columns = [*KEYS, "measure", "of", "value", "note"]
    return pd.concat(filled or parts[:1], ignore_index=True).reindex(columns=columns)


def in_scope(rows: pd.DataFrame, pruned_runs: Runs, method: str) -> pd.DataFrame:
    """Return rows of the pruned runs of a method, for heads in their scopes. Adds `start`."""
    runs = {name: run for name, run in pruned_runs.items() if run.method == method}
    scope = [(name, kind, run.start) for name, run in runs.items() for kind in run.kinds]
    return rows.merge(pd.DataFrame(scope, columns=["run", "kind", "start"]), on=["run", "kind"])


def at_start(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows of pruned runs as rows of the models at their `start`, if it is a model."""
    return rows[rows["start"] != RANDOM_WEIGHTS].assign(run=rows["start"])


def survival(kept: pd.DataFrame, pruned_runs: Runs, method: str = "gates") -> pd.DataFrame:
    """Return the share of the runs on a model that leave a head. Gates with λ 0 do not count."""
    runs = {name: run for name, run in pruned_runs.items() if run.lambda_ or method != "gates"}
    gates = at_start(in_scope(kept[kept["statistic"] == "gate"], runs, method))
    left = gates.assign(value=gates["value"].ne(0).astype(float))
    return left.groupby(KEYS, sort=False)["value"].mean().reset_index()


def learnt(kept: pd.DataFrame, pruned_runs: Runs, method: str, statistic: str) -> pd.DataFrame:
    """Return a statistic of pruned runs: of every pruned model, then of the one at its start."""
    kept = kept.replace({"statistic": {"p_zero": "p_open"}})
    rows = in_scope(kept[kept["statistic"] == statistic], pruned_runs, method)
    value = 1 - rows["value"] if statistic == "p_open" else rows["value"]
    rows = rows.assign(of=rows["run"], value=value)
    return pd.concat([rows, at_start(rows)], ignore_index=True)


def score_lost(ablation: pd.DataFrame) -> pd.DataFrame:
    """Return the score lost if a head alone is masked, on the first test set that is not dev."""
    single = ablation[(ablation["order"] == "single") & (ablation["test_set"] != "dev")]
    first = single.groupby(RUN, sort=False)["test_set"].transform("first")
    lost = single[single["test_set"] == first]
    ends = zip(0 - lost["delta_high"], 0 - lost["delta_low"], strict=True)
    notes = [f"95\u00a0%: {low:.2g} to {high:.2g}" for low, high in ends]
    return lost.assign(value=-lost["delta"], note=notes)


def position(positions: pd.DataFrame, pruned_positions: pd.DataFrame) -> pd.DataFrame:
    """Return the share of the largest weights at the relative position that a head prefers."""
    most = preferred(pd.concat([positions, pruned_positions], ignore_index=True))
    at = "at " + most["offset"].map("{:+d}".format).replace("+0", "0")
    words = most["statistic"].map({"share_content": f", {CONTENT_WORDS}"}).fillna("")
    return most.assign(note=at + words)


def syntax(syntax: pd.DataFrame, pruned_syntax: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy above the positional baseline in points, by relation and treebank."""
    rows = pd.concat([syntax, pruned_syntax], ignore_index=True)
    ends = zip(rows["relation"], rows["direction"], rows["treebank"], strict=True)
    of = [f"{relation} {arrow(relation, way)} ({bank})" for relation, way, bank in ends]
    notes = [f"accuracy {100 * share:.0f}\u00a0%" for share in rows["hits"] / rows["trials"]]
    above = 100 * (rows["hits"] - rows["baseline_hits"]) / rows["trials"]
    return rows.assign(of=of, value=above, note=notes)


def aligned(alignment: pd.DataFrame, pruned_alignment: pd.DataFrame) -> pd.DataFrame:
    """Return 1 − AER of content words at the step that predicts them."""
    rows = pd.concat([alignment, pruned_alignment], ignore_index=True)
    rows = rows.query("system == 'head' and step == 'output' and words == 'content'")
    return rows.assign(value=1 - rows["aer"], note=rows["links"] + " links").dropna(subset="value")


def masked(masks: pd.DataFrame) -> pd.DataFrame:
    """Return the share of the updates of a training that masked a head."""
    return frequencies(with_updates(masks)).rename("value").reset_index()
