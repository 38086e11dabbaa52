"""Numbers that Michel et al. print of heads removed from trained models, in our units.

Layers and heads count from 0. The column `metric` names the score: `bleu` or `accuracy`.
"""

from math import ceil

import pandas as pd

from headcount.analysis import read_beside
from headcount.analysis.frames import BASE
from headcount.analysis.published.numbers import Published

PAPER: Published = read_beside(__file__, Published)
table = PAPER.table
_MODEL = {"pair": "wmt14.en-fr", "run": BASE, "test_set": "newstest2013", "metric": "bleu"}
_SMALL = {"pair": "iwslt14.de-en", "run": BASE, "metric": "bleu"}
_BERT = {"pair": "MultiNLI", "run": "BERT", "test_set": "matched", "metric": "accuracy"}
_BERT_HEADS = 12  # in a layer


def single_heads() -> pd.DataFrame:
    """Return Table 1: effects of masking single heads of encoder self-attention."""
    heads = table("table1", "delta").merge(table("significant_table1", "significant"))
    heads[["layer", "head"]] -= 1
    return heads.assign(**_MODEL, kind="enc_self")


def lone_heads() -> pd.DataFrame:
    """Return the change with one head in a layer, and `dev_delta` where that head was chosen."""
    flags = table("significant_table5", "significant")
    scores = table("table5", "delta").merge(table("table2", "dev_delta")).merge(flags)
    scores = scores.assign(**_MODEL | {"test_set": "newstest2014"}, heads=16)
    bert = table("table6", "delta").merge(table("table3", "dev_delta"))
    bert = bert.assign(**_BERT, kind="enc_self", significant=0, heads=_BERT_HEADS)
    both = pd.concat([scores, bert], ignore_index=True)
    return both.assign(layer=both["layer"] - 1)


def correlations() -> pd.DataFrame:
    """Return Pearson's r of the effects of single heads on two test sets, Figure 2."""
    parts = [table("figure2").assign(**_MODEL), table("bert_figure2").assign(**_BERT)]
    names = {"second": "other_test_set", "value": "pearson"}
    return pd.concat(parts, ignore_index=True).rename(columns=names).assign(kind="all")


def curves() -> pd.DataFrame:
    """Return BLEU as heads are pruned, Figures 3, 4 and 6d: scope, order, percent, score, delta."""
    parts = [
        table("figure3", "score").assign(**_MODEL, scope="all"),
        table("figure4", "score").assign(**_MODEL, order="importance"),
        table("figure6d", "score").assign(**_SMALL, scope="all"),
    ]
    points = pd.concat(parts, ignore_index=True).astype({"percent": float})
    whole = points.groupby(["pair", "scope", "order"])["score"].transform("first")
    return points.assign(delta=points["score"] - whole)


def prunable() -> pd.DataFrame:
    """Return the share of BERT's heads that can be pruned without a noticeable loss, MultiNLI."""
    percent = table("prunable_bert").set_index("task").loc["mnli", "value"]
    heads = _BERT_HEADS * len(table("table3"))  # Table 3 has a number for every layer
    held = {"last_ok_heads": ceil(heads * percent / 100), "last_ok_percent": percent}
    return pd.DataFrame([_BERT | {"scope": "all", "order": "importance", "heads": heads} | held])


def training() -> pd.DataFrame:
    """Return the percent of BLEU kept as heads are pruned, by epoch, Figure 5."""
    points = table("figure5", "kept")
    epochs = points[["epoch"]].drop_duplicates()
    ends = [epochs.assign(percent=percent, kept=100.0 - percent) for percent in (0, 100)]
    points = pd.concat([points, *ends]).sort_values(["epoch", "percent"])
    return points.assign(**_SMALL, update="epoch " + points["epoch"].astype(str))


def speed() -> pd.DataFrame:
    """Return examples per second of BERT by percent of heads removed and batch size, Table 4."""
    keys = ["heads", "batch_size"]
    wide = table("table4").pivot(index=keys, columns="measure", values="value").reset_index()
    wide = wide.assign(pair="BERT", run=BASE, phase="classify", repeats=6)
    return wide.assign(percent=100 - wide["heads"]).sort_values(["percent", "batch_size"])
