"""One table of every encoder head: its numbers, its labels, its place in its layer."""

import pandas as pd

from headcount.findings import exhibits
from headcount.findings.cells import NONE
from headcount.findings.results import Results
from headcount.findings.setting import of_one_training
from headcount.findings.tables import Table
from headcount.findings.voita_roles.measured import all_roles, describe_roles

CAPTION = (
    "Every encoder head of every trained model, layer by layer, the most relevant first. Function: "
    "relative position of the word it points at, if nearly always the same; relations for which it "
    "exceeds the positional baseline by the margin; rare, if it points at the rarest words. "
    "Relevance: share of its layer by relevance propagation, with its 95 % bootstrap interval over "
    "sentences. Confidence: mean largest weight. Position: where it points most often, and in what "
    "share of cases. Rarest, two rarest: share of largest weights there. Importance: nats per "
    "sentence unless the settings say otherwise. Survives: in how many of the gates runs on this "
    f"model with λ above 0. {of_one_training('sentences')}"
)


@exhibits.table("voita_roles", "Every encoder head", needs=("roles",), uses=("pruned_runs", "kept"))
def roles(results: Results) -> Table:
    """Every encoder head of every trained model."""
    table = all_roles(results)
    return Table(table, roles_summary(table), f"{CAPTION} {describe_roles(results)}")


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


def _interval(row: dict) -> str:
    return f"{row['relevance']:.3f} ({row['relevance_low']:.3f} to {row['relevance_high']:.3f})"


def _signed(offset: int) -> str:
    return f"{offset:+d}" if offset else "0"


def _number(value: float | str) -> str:
    return NONE if value == "" else f"{value:.2f}"


def _percent(value: float | str) -> str:
    return NONE if value == "" else f"{value:.0%}".replace("%", " %")
