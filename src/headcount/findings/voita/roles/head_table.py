"""One table of every encoder head: its numbers, its labels, its place in its layer."""

import pandas as pd

from headcount.findings.cells import NONE
from headcount.findings.run_tables import HEAD, KEYS
from headcount.findings.setting import of_one_training

NUMBERS = ["relevance", "relevance_low", "relevance_high", "confidence", "entropy"]
NUMBERS += ["rare_rarest", "rare_two_rarest", "rare_two_rarest_chance", "importance", "survival"]
COLUMNS = [*KEYS, *HEAD, "rank", "function", *NUMBERS, "offset", "share"]

CAPTION = (
    "Every encoder head of every trained model, layer by layer, the most relevant first. Function: "
    "relative position of the word it points at, if nearly always the same; relations for which it "
    "exceeds the positional baseline by the margin; rare, if it points at the rarest words. "
    "Relevance: share of its layer by relevance propagation, with its 95 % bootstrap interval over "
    "sentences. Confidence: mean largest weight. Position: where it points most often, and in what "
    "share of cases. Rarest, two rarest: share of largest weights there. Importance: nats per "
    "sentence unless the settings say otherwise. Survives: in how many of the gates runs on this "
    f"model that have a price. {of_one_training('sentences')}"
)


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


def roles_summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it."""
    rows = []
    for row in table.to_dict("records"):
        near = (
            f"{_signed(row['offset'])} ({_percent(row['share'])})" if row["offset"] != "" else NONE
        )
        rows.append(
            {"pair": row["pair"], "run": row["run"], "seed": row["seed"]}
            | {"layer": row["layer"], "head": row["head"]}
            | {"function": row["function"] or NONE, "relevance": _interval(row)}
            | {"confidence": _number(row["confidence"]), "entropy": _number(row["entropy"])}
            | {"position": near, "rarest": _percent(row["rare_rarest"])}
            | {"two rarest": _percent(row["rare_two_rarest"])}
            | {"importance": _number(row["importance"]), "survives": _percent(row["survival"])}
        )
    return pd.DataFrame(rows)


def wide(rows: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Statistics by name, a head a row: pair, run, seed, kind, layer, head, then the names."""
    chosen = rows[rows["statistic"].isin(names)]
    table = chosen.pivot_table(
        index=[*KEYS, *HEAD], columns="statistic", values="value", sort=False
    )
    return table.reset_index().rename_axis(columns=None).reindex(columns=[*KEYS, *HEAD, *names])


def _order(table: pd.DataFrame):
    """Sorting key that keeps pairs and runs in the order in which they come."""
    places = {name: {v: n for n, v in enumerate(table[name].unique())} for name in ("pair", "run")}
    return lambda column: column.map(places[column.name]) if column.name in places else column


def _interval(row: dict) -> str:
    return f"{row['relevance']:.3f} ({row['relevance_low']:.3f} to {row['relevance_high']:.3f})"


def _signed(offset: int) -> str:
    return f"{offset:+d}" if offset else "0"


def _number(value: float | str) -> str:
    return NONE if value == "" else f"{value:.2f}"


def _percent(value: float | str) -> str:
    return NONE if value == "" else f"{value:.0%}".replace("%", " %")
