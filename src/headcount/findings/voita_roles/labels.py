"""What each encoder head does, from the measurements of its model: numbers, labels, functions."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from headcount.base.settings.roles import RolesSettings
from headcount.findings.results import HEAD, KEYS, gather
from headcount.findings.tables import fill_empty

VALUES = [*HEAD, "statistic", "value"]
POSITIONS = [*VALUES, "offset", "hits", "trials"]
SYNTAX = [*VALUES, "treebank", "relation", "direction", "offset", "trials", "hits"]
SYNTAX += ["baseline_hits", "head_only", "baseline_only", "half_trials", "half_hits"]
HEAD_KEYS = [*KEYS, *HEAD]
ATTENTION = ["confidence", "entropy", "rare_rarest", "rare_rarest_chance", "rare_two_rarest"]
ATTENTION += ["rare_two_rarest_chance"]

_ENDS = {"nsubj": ("v", "s"), "obj": ("v", "o"), "amod": ("n", "a"), "advmod": ("v", "adv")}
SHOWN = {"obj": "dobj (obj)"}
"""Relations that the paper calls otherwise: its name first."""


def arrow(relation: str, direction: str) -> str:
    """How the paper writes a relation and a direction: `v→s` from the verb to its subject."""
    governor, dependent = _ENDS.get(relation, ("head", relation))
    ends = (governor, dependent) if direction == "to_dependent" else (dependent, governor)
    return "→".join(ends)


def wide(rows: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Statistics by name, a head a row: pair, run, seed, kind, layer, head, then the names.

    NaN where a head lacks one.
    """
    chosen = rows[rows["statistic"].isin(names)]
    table = chosen.pivot_table("value", HEAD_KEYS, "statistic", sort=False)
    return table.reset_index().rename_axis(columns=None).reindex(columns=[*HEAD_KEYS, *names])


def read_roles(
    attention: list[Path], positions: list[Path], syntax: list[Path], settings: RolesSettings
) -> pd.DataFrame:
    """A row for every encoder head of every model: what was measured, and what that makes it.

    Columns: pair, run, seed, kind, layer, head; confidence, entropy, rare_rarest, rare_two_rarest
    and their chances; offset and share (of the position it points at most often; empty if it points
    at none); position, relations and rare, the labels, empty where it has none; function, all
    labels as people read them: `-1`, `v→s, v→o`, `rare`; empty without any. Syntactic labels go by
    the first treebank of each model.
    """
    values = gather(attention, VALUES)
    heads = wide(values[values["kind"] == "enc_self"], ATTENTION)
    heads = heads.merge(_positions(gather(positions, POSITIONS), settings), "left", HEAD_KEYS)
    relations = _relations(gather(syntax, SYNTAX), settings)
    heads = heads.merge(relations, "left", HEAD_KEYS)
    names = ["position", "relations", "share"]
    heads[names] = fill_empty(heads[names])
    heads["offset"] = ["" if pd.isna(offset) else int(offset) for offset in heads["offset"]]
    heads["rare"] = ["rare" if v >= settings.rare_share else "" for v in heads["rare_two_rarest"]]
    labels = heads[["position", "relations", "rare"]].to_numpy()
    heads["function"] = [", ".join(filter(None, row)) for row in labels]
    return heads


def label_classes(function: str) -> set[str]:
    """Kinds of a head's labels, of which `function` has all: positional, syntactic, rare."""
    names = set(filter(None, function.split(", ")))
    kinds = {
        "positional" if name.lstrip("+-").isdigit() else "syntactic" for name in names - {"rare"}
    }
    return kinds | names & {"rare"}


def label_count(function: str) -> int:
    """How many labels a head has: `s→v, v→o` are two."""
    return len(function.split(", ")) if function else 0


def preferred(positions: pd.DataFrame) -> pd.DataFrame:
    """Of each head the row of the position that it points at most often."""
    if positions.empty:
        return positions
    return positions.loc[positions.groupby(HEAD_KEYS, sort=False)["hits"].idxmax()]


def _positions(positions: pd.DataFrame, settings: RolesSettings) -> pd.DataFrame:
    """The position each encoder head points at most often, and the label if it always does."""
    most = preferred(positions[positions["kind"] == "enc_self"])
    found = most[[*HEAD_KEYS, "offset", "value"]].rename(columns={"value": "share"})
    labelled = found["share"] >= settings.positional_share
    return found.assign(position=found["offset"].map("{:+d}".format).where(labelled, ""))


def exceeds(row: Mapping[str, float], settings: RolesSettings) -> bool:
    """Whether a head's accuracy exceeds that of the positional baseline by the margin."""
    baseline = row["baseline_hits"] / row["trials"]
    kind = settings.margin_kind
    least = baseline + settings.margin * (1 if kind == "absolute" else baseline)
    # A count away from the margin, not a rounding error.
    return row["hits"] / row["trials"] >= least - 1e-9


def _relations(syntax: pd.DataFrame, settings: RolesSettings) -> pd.DataFrame:
    """The relations for which each head exceeds the baseline, on its model's first treebank."""
    first = syntax.groupby(KEYS, sort=False)["treebank"].transform("first")
    rows = syntax[syntax["treebank"] == first]
    above = [exceeds(row, settings) for row in rows.to_dict("records")]
    found = rows[pd.Series(above, rows.index, dtype=bool)]
    names = [arrow(*row) for row in zip(found["relation"], found["direction"], strict=True)]
    found = found.assign(relations=names)
    return found.groupby(HEAD_KEYS, sort=False)["relations"].agg(", ".join).reset_index()
