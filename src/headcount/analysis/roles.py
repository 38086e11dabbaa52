"""Roles of encoder heads: labels by relative position, by relation and for rare words."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from headcount.analysis.frames import HEAD, RUN, Data
from headcount.base.settings.heads import RolesSettings
from headcount.data.lines import clean_lines

KEYS = [*RUN, *HEAD]
ATTENTION = ["confidence", "entropy", "rare_rarest", "rare_two_rarest", "rare_two_rarest_chance"]

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
    table = wide(heads[heads["kind"] == "enc_self"], ATTENTION).merge(most, "left", KEYS)
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


def preferred(positions: pd.DataFrame) -> pd.DataFrame:
    """Return, for every head, the row of the position at which most of its largest weights are."""
    return positions.loc[positions.groupby(KEYS, sort=False)["hits"].idxmax()]


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
