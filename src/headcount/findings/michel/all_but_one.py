"""One head alone in its layer: the best one by dev, scored on a test set."""

import pandas as pd

from headcount.base.addresses import KINDS
from headcount.findings import exhibits
from headcount.findings.cells import NONE, interval, mean_sd, p_value, run_cells
from headcount.findings.michel.measured import BLEU, LEVEL, Metric, describe_scored, read_ablation
from headcount.findings.published import michel
from headcount.findings.published.numbers import with_printed
from headcount.findings.results import Results
from headcount.findings.run_tables import BASE, HEAD, KEYS
from headcount.findings.setting import of_one_training
from headcount.findings.tables import Table

COLUMNS = [*KEYS, "test_set", *HEAD, "heads", "dev_delta", "dev_p", "delta"]
COLUMNS += ["delta_low", "delta_high", "p", "significant"]


@exhibits.table("michel_all_but_one", needs=("ablated",))
def all_but_one(results: Results) -> Table:
    """Tables 2 and 5: one head left in a layer."""
    notes = (
        f"Rows whose source is paper: {michel.SOURCE}, Tables 2 (as our dev, newstest2013) and 5 "
        f"(newstest2014); layers in brackets. {michel.BESIDE_OURS} "
        f"{describe_scored(results)}"
    )
    ours = results.read(read_ablation, "ablation")
    return all_but_one_table(ours, printed_all_but_one(), BLEU, notes)


def all_but_one_table(
    ablation: pd.DataFrame, printed: pd.DataFrame, metric: Metric, notes: str
) -> Table:
    """One head left in a layer, then a paper's rows of `lone_heads`; `notes` end the caption."""
    tidy = with_printed(lone_heads(ablation), printed)
    return Table(
        tidy,
        _summary(tidy),
        f"{metric.initial} change when a layer keeps one head of a kind of attention, all other "
        "layers whole: the head that is best on dev, scored on the test set, with 95 % interval "
        f"and p by paired bootstrap; p < {LEVEL} is called significant. The change on dev is that "
        "of the best of several, and so too good. "
        f"{of_one_training(f'test {metric.counted}')} {notes}",
    )


def lone_heads(ablation: pd.DataFrame) -> pd.DataFrame:
    """One layer of one kind on one test set a row: columns of `COLUMNS`.

    `head` is the one that stays, of `heads`. Layers and heads count from 0. `significant`: 1 where
    p < `LEVEL`, on the test set.
    """
    alone = ablation[ablation["order"] == "all_but_one"]
    dev = alone.loc[alone["test_set"] == "dev", [*KEYS, *HEAD, "delta", "p"]]
    dev = dev.rename(columns={"delta": "dev_delta", "p": "dev_p"})
    ours = alone[alone["test_set"] != "dev"].merge(dev, "left", [*KEYS, *HEAD])
    ours = ours.assign(
        heads=ours["heads_masked"] + 1,
        significant=(ours["p"] < LEVEL).astype(int),
        task=ours.groupby([*KEYS, "test_set"], sort=False).ngroup(),
        place=ours["kind"].map(KINDS.index),
    )
    return ours.sort_values(["task", "place", "layer"], kind="stable")[COLUMNS]


def printed_all_but_one() -> pd.DataFrame:
    """The paper's rows of `lone_heads`: the head best on newstest2013, on newstest2014."""
    chosen, scored = (michel.all_but_one(number) for number in (2, 5))
    both = scored.merge(chosen, on=["kind", "layer"], suffixes=("", "_dev"), validate="one_to_one")
    both = both.rename(columns={"value": "delta", "value_dev": "dev_delta"})
    both["layer"] -= 1
    both = both.assign(pair=michel.PAIR, run=BASE, test_set="newstest2014", heads=16)
    return both.assign(place=both["kind"].map(KINDS.index)).sort_values(["place", "layer"])


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per layer, and one that counts them."""
    rows = []
    for (*run, test, source), found in table.groupby([*KEYS, "test_set", "source"], sort=False):
        head = run_cells(*run) | {"test set": test}
        rows += [head | _layer(row) | {"source": source} for row in found.to_dict("records")]
        harmless = ((found["significant"] == 0) | (found["delta"] >= 0)).sum()
        as_good = (found["delta"] >= 0).sum()
        counts = f"{harmless} without a significant loss, {as_good} without any"
        cells = {"kind": "all", "layer": f"{len(found)} layers", "on test": counts}
        rows.append(head | cells | {"source": source})
    return pd.DataFrame(rows).fillna(NONE)


def _layer(row: dict) -> dict[str, str]:
    """Cells of one layer."""
    ours = row["source"] == "ours"
    printed = f"{'<' if row['significant'] else '≥'} {LEVEL}"
    return {
        "kind": row["kind"],
        "layer": str(row["layer"]),
        "stays": f"head {row['head']} of {row['heads']}" if ours else NONE,
        "on dev": mean_sd([row["dev_delta"]], "+"),
        "on test": mean_sd([row["delta"]], "+"),
        "95 % interval": interval([row["delta_low"]], [row["delta_high"]]),
        "p": p_value(row["p"]) if ours else printed,
    }
