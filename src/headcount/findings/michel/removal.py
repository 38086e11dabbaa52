"""Which heads go first: every head of a pruned model in that order, and what it costs alone."""

import pandas as pd

from headcount.base.addresses import Head
from headcount.findings import exhibits
from headcount.findings.headmask.importance import of_heads, read_importance
from headcount.findings.michel.measured import as_compared, describe_ranked, masked_heads
from headcount.findings.michel.pruning import judged_curves, measured_points
from headcount.findings.results import HEAD, KEYS, Results, gather
from headcount.findings.setting import importance_unit, of_one_training
from headcount.findings.tables import Table, interval, mean_sd, run_cells

SHOWN, LEAST = 60, 10
"""Heads that people read, of all models together, and of each at least; the CSV has all."""

_CHANGES = ["loss_change", "loss_rise"]
_TASK = [*KEYS, "test_set"]
COLUMNS = [*_TASK, "rank", "address", *HEAD, "importance_compared", "importance"]
COLUMNS += ["delta", "delta_low", "delta_high", "p", *_CHANGES]
COLUMNS += ["goes_at", "goes_percent", "before_loss"]


@exhibits.table("michel_removal", needs=("importance", "ablated", "loss_change", "profiles"))
def removal(results: Results) -> Table:
    """Which heads go, in order."""
    tidy = heads_in_order(results)
    models = tidy.groupby(_TASK, sort=False)
    heads, first = models.size().max(), max(LEAST, SHOWN // len(models))
    return Table(
        tidy,
        pd.DataFrame([_cells(row) for row in models.head(first).to_dict("records")]),
        "Every head in the order in which heads go by importance, the least important first, and "
        "what it costs when it alone is masked. Those before the first significant loss go "
        "together without one on the test sentences; of few sentences that says little.",
        (
            f"Of each model the first {first} of {heads} heads; the CSV has all."
            if heads > first
            else "",
            "Head: its address, as `scripts/remove.py --list` takes it. Goes at: the step of table "
            "michel_pruning, order importance over all kinds, with which it goes, and how many are "
            "gone by then. Before the first loss: whether that step comes before the first whose "
            "loss is significant.",
            "Importance compared: of the whole model; heads go by it, and within a step are listed "
            "by it, but with ablation.reestimate steps go by what is measured after the step "
            f"before. As measured ({importance_unit(results.ranking)}): what `scripts/remove.py "
            "--importance` orders them by.",
            "BLEU change of the head alone, with its 95 % interval by paired bootstrap; heads that "
            "cost nothing alone may cost much together. Loss change: its mean size over the "
            "sentences of importance; loss rise: the same with its sign, above 0 where the loss "
            "is higher without the head.",
            of_one_training("test sentences"),
            *describe_ranked(results),
        ),
    )


def heads_in_order(results: Results) -> pd.DataFrame:
    """One head of one ablated model a row, the first to go first: columns of `COLUMNS`.

    `goes_at`, `goes_percent`: heads gone, and their percentage, at the step with which it goes.
    """
    table = _worth(results).merge(_steps(results), on=[*_TASK, "address"])
    place = table.groupby(_TASK, sort=False).ngroup()
    # Of equally important heads the last goes first, as in the pruning.
    order = ["place", "goes_at", "importance_compared"]
    table = table.assign(place=place)[::-1].sort_values(order, kind="stable")
    table["rank"] = table.groupby("place").cumcount() + 1
    return table.reset_index(drop=True)[COLUMNS]


def _worth(results: Results) -> pd.DataFrame:
    """Importance of each head, and what BLEU and the loss do without it; in flat order."""
    changes = gather(results.files("loss_change"), [*HEAD, "statistic", "value"])
    changes = changes.pivot(index=[*KEYS, *HEAD], columns="statistic", values="value")
    importance = of_heads(results.read(read_importance, "importance"))
    importance = importance.rename(columns={"value": "importance"}).assign(
        importance_compared=as_compared(importance, KEYS, results),
        address=[Head(*head).name() for head in importance[HEAD].itertuples(index=False)],
    )
    single = masked_heads(results).query("order == 'single'")
    table = importance.merge(single, on=[*KEYS, *HEAD])
    return table.merge(changes[_CHANGES].reset_index(), on=[*KEYS, *HEAD])


def _steps(results: Results) -> pd.DataFrame:
    """With which step of pruning by importance each head goes, by its address."""
    columns = ["test_set", "scope", "order", "index", "heads_masked", "heads"]
    sets = gather(results.files("profiles"), columns).query(
        "scope == 'all' and order == 'importance'"
    )
    sets["goes_percent"] = 100 * sets["index"] / sets.groupby(_TASK)["index"].transform("max")
    sets["address"] = sets["heads"].fillna("").str.split()
    first = sets.explode("address").drop_duplicates([*_TASK, "address"])  # steps are in order
    first = first.dropna(subset="address").rename(columns={"heads_masked": "goes_at"})
    curves = judged_curves(measured_points(results)).query(
        "scope == 'all' and order == 'importance'"
    )
    first = first.merge(curves[[*_TASK, "holds_percent"]], on=_TASK)
    held = first["goes_percent"] <= first["holds_percent"]
    return first.assign(before_loss=held.map({True: "yes", False: "no"}))[
        [*_TASK, "address", "goes_at", "goes_percent", "before_loss"]
    ]


def _cells(row: dict) -> dict[str, str]:
    """One head as people read it."""
    return (
        run_cells(*(row[key] for key in KEYS))
        | {"rank": str(row["rank"]), "head": row["address"]}
        | {"importance compared": f"{row['importance_compared']:.3f}"}
        | {"as measured": f"{row['importance']:.3f}"}
        | {"BLEU change": mean_sd([row["delta"]], "+")}
        | {"95 % interval": interval([row["delta_low"]], [row["delta_high"]])}
        | {"loss change": f"{row['loss_change']:.3f}", "loss rise": f"{row['loss_rise']:+z.3f}"}
        | {"goes at": f"{row['goes_percent']:.0f} % ({row['goes_at']})"}
        | {"before the first loss": row["before_loss"]}
    )
