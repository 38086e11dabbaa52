"""One head alone in its layer: the best one by dev, scored on a test set."""

import pandas as pd

from headcount.base.addresses import KINDS
from headcount.findings.cells import NONE, p_value
from headcount.findings.michel.metric import Metric
from headcount.findings.michel.single import LEVEL
from headcount.findings.published import michel
from headcount.findings.published.numbers import beside_ours
from headcount.findings.run_tables import BASE, KEYS
from headcount.findings.setting import of_one_training

_LAYER = ["kind", "layer"]
COLUMNS = [*KEYS, "test_set", *_LAYER, "head", "heads", "dev_delta", "dev_p", "delta"]
COLUMNS += ["delta_low", "delta_high", "p", "significant", "source"]

PRINTED = (
    f"Rows whose source is paper: {michel.source()}, Tables 2 (as our dev, newstest2013) and 5 "
    f"(newstest2014); layers in brackets. {beside_ours(michel.metric())}"
)


def caption(metric: Metric) -> str:
    """What our rows say."""
    return (
        f"{metric.initial} change when a layer keeps one head of a kind of attention, all other "
        "layers whole: the head that is best on dev, scored on the test set, with 95 % interval "
        f"and p by paired bootstrap; p < {LEVEL} is called significant. The change on dev is that "
        "of the best of several, and so too good. "
        f"{of_one_training(f'test {metric.counted}')}"
    )


def all_but_one_table(ablation: pd.DataFrame) -> pd.DataFrame:
    """One layer of one kind on one test set a row: columns of `COLUMNS`.

    `head` is the one that stays, of `heads`. Layers and heads count from 0. `significant`: 1 where
    p < `LEVEL`, on the test set.
    """
    alone = ablation[ablation["order"] == "all_but_one"]
    dev = alone[alone["test_set"] == "dev"].set_index([*KEYS, *_LAYER, "head"])
    rows = []
    for found in alone[alone["test_set"] != "dev"].to_dict("records"):
        chosen = dev.loc[tuple(found[name] for name in [*KEYS, *_LAYER, "head"])]
        row = {name: found[name] for name in COLUMNS if name in found}
        row |= {"heads": found["heads_masked"] + 1, "source": "ours"}
        row |= {"dev_delta": chosen["delta"], "dev_p": chosen["p"]}
        rows.append(row | {"significant": int(found["p"] < LEVEL)})
    ours = pd.DataFrame(rows, columns=COLUMNS)
    places = ours["kind"].map(KINDS.index)
    order = [*KEYS, "test_set", "place", "layer"]
    ranks = {name: ours[name].map(list(ours[name].unique()).index) for name in (*KEYS, "test_set")}
    ours = ours.assign(place=places, **{f"{k}_rank": v for k, v in ranks.items()}).sort_values(
        [f"{name}_rank" for name in (*KEYS, "test_set")] + order[-2:], kind="stable"
    )
    return ours[COLUMNS].astype(object)


def printed_all_but_one() -> pd.DataFrame:
    """The paper's rows of `all_but_one_table`: the head best on newstest2013, on newstest2014."""
    chosen, scored = (michel.all_but_one(number) for number in (2, 5))
    both = scored.merge(chosen, on=["kind", "layer"], suffixes=("", "_dev"), validate="one_to_one")
    both = both.rename(columns={"value": "delta", "value_dev": "dev_delta"})
    both["layer"] = both["layer"] - 1
    both = both.assign(pair=michel.PAIR, run=BASE, seed="", test_set="newstest2014", heads=16)
    both = both.assign(place=both["kind"].map(KINDS.index)).sort_values(["place", "layer"])
    return both.reindex(columns=COLUMNS, fill_value="").assign(source="paper").astype(object)


def all_but_one_summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per layer, and one that counts them."""
    rows = []
    keys = [*KEYS, "test_set", "source"]
    for (pair, run, seed, test, source), found in table.groupby(keys, sort=False):
        head = {"pair": pair, "run": run, "seed": str(seed) or NONE, "test set": test}
        rows += [head | _layer(row) | {"source": source} for row in found.to_dict("records")]
        harmless = ((found["significant"] == 0) | (found["delta"] >= 0)).sum()
        as_good = (found["delta"] >= 0).sum()
        rows.append(
            head
            | {"kind": "all", "layer": f"{len(found)} layers", "stays": NONE, "on dev": NONE}
            | {"on test": f"{harmless} without a significant loss, {as_good} without any"}
            | {"95 % interval": NONE, "p": NONE, "source": source}
        )
    return pd.DataFrame(rows)


def _layer(row: dict) -> dict[str, str]:
    """Cells of one layer."""
    ours = row["source"] == "ours"
    strong = "" if row["p"] != "" or not row["significant"] else f"< {LEVEL}"
    return {
        "kind": row["kind"],
        "layer": str(row["layer"]),
        "stays": f"head {row['head']} of {row['heads']}" if ours else NONE,
        "on dev": f"{row['dev_delta']:+z.2f}",
        "on test": f"{row['delta']:+z.2f}",
        "95 % interval": f"{row['delta_low']:+z.2f} to {row['delta_high']:+z.2f}" if ours else NONE,
        "p": p_value(row["p"]) if ours else strong or f"≥ {LEVEL}",
    }
