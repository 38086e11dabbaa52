"""What each head is worth alone, and whether it is the same on another test set."""

from itertools import combinations
from math import isnan
from pathlib import Path

import numpy as np
import pandas as pd

from headcount.base.addresses import KINDS
from headcount.base.errors import UserError
from headcount.findings.cells import NONE, p_value
from headcount.findings.michel.metric import Metric
from headcount.findings.published import michel
from headcount.findings.published.numbers import beside_ours
from headcount.findings.run_tables import BASE, HEAD, KEYS, gather
from headcount.findings.setting import of_one_training
from headcount.findings.significance import correlate, holm

LEVEL = 0.01
"""Of p, below which one head's effect is called significant; the paper's."""

_SCORES = ["bleu", "delta", "delta_low", "delta_high", "p"]
READ = ["test_set", "order", "index", *HEAD, "heads_masked", *_SCORES, "signature"]
COLUMNS = [*KEYS, "test_set", *HEAD, *_SCORES, "p_holm", "significant", "source"]
TRANSFER = [*KEYS, "test_set", "other_test_set", "kind", "heads", "pearson", "pearson_low"]
TRANSFER += ["pearson_high", "pearson_p", "spearman", "spearman_low", "spearman_high"]
TRANSFER += ["spearman_p", "source"]

PRINTED = (
    f"Rows whose source is paper: {michel.source()}, Table 1 (encoder self-attention, "
    f"newstest2013). {beside_ours(michel.metric())}"
)
PRINTED_TRANSFER = (
    f"The paper's row: {michel.source()}, newstest2013 against MTNT. {beside_ours(michel.metric())}"
)


def caption(metric: Metric) -> str:
    """What our rows of the table of single heads say."""
    return (
        f"{metric.initial} change when one head is masked, nothing retrained, by kind of "
        f"attention. Significant: p < {LEVEL} by paired bootstrap (a p that is nearly one-sided), "
        "and in brackets how many of these are gains; Holm: still so once p is corrected for all "
        f"heads of the model. {of_one_training(f'test {metric.counted}')}"
    )


def transfer_caption(metric: Metric) -> str:
    """What our rows of the table of two test sets say."""
    return (
        f"Correlation, over heads, of the {metric.word} change on two test sets when the head is "
        "masked; intervals (95 %) by bootstrap over heads, p by shuffling them. Both sides have "
        f"the noise of their {metric.counted}, which lowers it. {of_one_training('heads')}"
    )


def read_ablation(files: list[Path]) -> pd.DataFrame:
    """Rows of ablation.csv that mask heads: pair, run, seed, and its columns.

    Raises UserError for files without a single head.
    """
    return masked_rows(gather(files, READ), files[0], "scripts/ablation.py")


def masked_rows(table: pd.DataFrame, file: Path, script: str) -> pd.DataFrame:
    """The rows that mask heads, with whole numbers of layers and heads.

    Raises UserError if none masks a single head; `file` and `script` say which to make again.
    """
    masked = table[table["order"] != "none"].reset_index(drop=True)
    if not (masked["order"] == "single").any():
        raise UserError(
            f"{file}: expected rows of order single, one a head, found none; run {script} again"
        )
    return masked.astype({"layer": int, "head": int})


def single_table(ablation: pd.DataFrame) -> pd.DataFrame:
    """One head on one test set a row: columns of `COLUMNS`.

    `p_holm`: p corrected for all heads of that model on that test set. `significant`: 1 where
    p < `LEVEL`. Layers and heads count from 0.
    """
    ours = ablation[ablation["order"] == "single"].copy()
    ours["p_holm"] = ours.groupby([*KEYS, "test_set"], sort=False)["p"].transform(
        lambda values: holm(values.to_numpy())
    )
    ours["significant"] = (ours["p"] < LEVEL).astype(int)
    return ours.reindex(columns=COLUMNS).assign(source="ours").astype(object)


def printed_single() -> pd.DataFrame:
    """The paper's rows of `single_table`; empty cells are not printed there."""
    printed = michel.single_heads().assign(
        pair=michel.PAIR, run=BASE, seed="", test_set="newstest2013", kind="enc_self"
    )
    printed["layer"], printed["head"] = printed["layer"] - 1, printed["head"] - 1
    printed = printed.rename(columns={"value": "delta"}).reindex(columns=COLUMNS, fill_value="")
    return printed.assign(source="paper").astype(object)


def single_summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per model, test set and kind."""
    rows = []
    keys = [*KEYS, "test_set", "kind", "source"]
    for (pair, run, seed, test, kind, source), found in table.groupby(keys, sort=False):
        deltas = found["delta"].astype(float)
        strong = found["significant"] == 1
        row = {"pair": pair, "run": run, "seed": str(seed) or NONE, "test set": test, "kind": kind}
        row |= {"heads": str(len(found)), "mean change": f"{deltas.mean():+z.2f}"}
        row |= {"worst": f"{deltas.min():+z.2f}", "best": f"{deltas.max():+z.2f}"}
        row["significant"] = f"{strong.sum()} ({(strong & (deltas > 0)).sum()} gains)"
        corrected = (found["p_holm"] != "") & (pd.to_numeric(found["p_holm"]) < LEVEL)
        row["Holm"] = str(corrected.sum()) if source == "ours" else NONE
        rows.append(row | {"source": source})
    return pd.DataFrame(rows)


def transfer_points(ablation: pd.DataFrame) -> pd.DataFrame:
    """Effects of every head on two test sets: pair, run, seed, both sets, head, delta of both.

    Columns: KEYS, test_set, other_test_set, kind, layer, head, delta, other_delta; a row per head
    for each two test sets, in the order of the file with dev last.
    """
    single = ablation[ablation["order"] == "single"]
    parts = []
    for key, found in single.groupby(KEYS, sort=False):
        tests = list(found["test_set"].unique())
        tests = [*tests[1:], tests[0]]  # dev comes first in the file
        by_test = {test: rows.set_index(HEAD)["delta"] for test, rows in found.groupby("test_set")}
        for one, other in combinations(tests, 2):
            both = pd.DataFrame({"delta": by_test[one], "other_delta": by_test[other]})
            names = dict(zip(KEYS, key, strict=True)) | {"test_set": one, "other_test_set": other}
            parts.append(both.reset_index().assign(**names))
    columns = [*KEYS, "test_set", "other_test_set", *HEAD, "delta", "other_delta"]
    return pd.concat(parts, ignore_index=True)[columns]


def transfer_table(points: pd.DataFrame) -> pd.DataFrame:
    """One model, two test sets and a kind, or all heads, a row: columns of `TRANSFER`.

    Raises UserError for fewer than four heads in all. A kind has a row if it has four heads or
    more, and is not the only one.
    """
    rows = []
    for key, found in points.groupby([*KEYS, "test_set", "other_test_set"], sort=False):
        parts = {kind: found[found["kind"] == kind] for kind in KINDS}
        for kind, heads in ({"all": found} | parts).items():
            if kind == "all" or 4 <= len(heads) < len(found):
                sides = heads["delta"].to_numpy(), heads["other_delta"].to_numpy()
                cells = [*correlate(*sides, ranks=False), *correlate(*sides, ranks=True)]
                known = ["" if isnan(cell) else cell for cell in cells]
                rows.append((*key, kind, len(heads), *known, "ours"))
    return pd.DataFrame(rows, columns=TRANSFER).astype(object)


def printed_transfer() -> pd.DataFrame:
    """The paper's row of `transfer_table`."""
    names = (michel.PAIR, BASE, "", "newstest2013", "mtnt", "all", "", michel.transfer())
    return pd.DataFrame([(*names, *[""] * 7, "paper")], columns=TRANSFER).astype(object)


def transfer_summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it."""
    rows = []
    for row in table.to_dict("records"):
        cells = {"pair": row["pair"], "run": row["run"], "seed": str(row["seed"]) or NONE}
        cells["test sets"] = f"{row['test_set']}, {row['other_test_set']}"
        cells |= {"kind": row["kind"], "heads": str(row["heads"]) or NONE}
        for name, words in (("pearson", "Pearson r"), ("spearman", "Spearman r")):
            cells[words] = _with_interval(row, name)
            cells[f"p ({words.split()[0]})"] = p_value(row[f"{name}_p"])
        rows.append(cells | {"source": row["source"]})
    return pd.DataFrame(rows)


def _with_interval(row: dict, name: str) -> str:
    if row[name] == "":
        return NONE
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    bounds = "" if low == "" else f" ({low:.2f} to {high:.2f})"
    return f"{np.float64(row[name]):.2f}{bounds}"
