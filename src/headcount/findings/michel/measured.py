"""What tables and figures of heads removed share: the rows on masked heads, and words on them."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.findings.masking import describe_tests
from headcount.findings.results import HEAD, KEYS, Results, gather, run_of
from headcount.findings.setting import describe_ranking, describe_setting

SCORES = ["bleu", "delta", "delta_low", "delta_high", "p"]
ABLATION = ["test_set", "order", "index", *HEAD, "heads_masked", *SCORES, "signature"]

LEVEL = 0.01
"""Of p, below which the effect of masking once is called significant; the paper's."""


@dataclass(frozen=True)
class Metric:
    """Names of one score; larger means better."""

    word: str  # within a sentence
    initial: str  # at the beginning of one
    axis: str  # on the axis of a curve, with its unit
    counted: str  # what a test set consists of
    kept: bool  # whether curves show the share of it that is kept, which corpora have in common


WHOLE_HEADS = (
    "Percent of heads: that of the step (heads are whole, so up to one more goes); of one head per "
    "layer the share that goes."
)
FIRST_ALONE = "Pruning in steps is scored on the first test set alone."
"""What a note says beside the test sets of single heads."""

BLEU = Metric("BLEU", "BLEU", "percent of BLEU kept", "sentences", True)
ACCURACY = Metric("accuracy", "Accuracy", "accuracy (%)", "pairs", False)


@cache
def masked_heads(results: Results) -> pd.DataFrame:
    """Rows of ablation.csv that mask heads: pair, run, seed, and its columns.

    Raises UserError for files without a single head.
    """
    files = results.files("ablation")
    return masked_rows(gather(files, ABLATION), files[0], "scripts/ablation.py")


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


def as_compared(importance: pd.DataFrame, keys: list[str], results: Results) -> pd.Series:
    """Column `value` as heads are compared by it, of models that `keys` tell apart.

    Files have it as measured, also where heads were ranked by its share of a layer's norm.
    """
    if results.settings["ablation"].normalise != "layer_l2":
        return importance["value"]
    layers = importance.groupby([*keys, "kind", "layer"])["value"]
    norms = layers.transform(np.linalg.norm)
    return importance["value"] / norms.where(norms > 0, 1)


def count_units(facts: list[Path], metric: Metric) -> pd.DataFrame:
    """How many sentences, or pairs, each model was scored on: pair, run, seed, test_set, and they.

    `facts` are the JSON files beside those of scores; the column has the name of what is counted.
    """
    rows = [
        (*run_of(path), test, count)
        for path in facts
        for test, count in read_json(path)[metric.counted].items()
    ]
    return pd.DataFrame(rows, columns=[*KEYS, "test_set", metric.counted])


def describe_models(results: Results) -> tuple[str, ...]:
    """Sentences on the models and the data; see `describe_setting`."""
    return describe_setting(results, masked_heads(results))


def describe_scored(results: Results) -> tuple[str, ...]:
    """Sentences on the test sets, the search, the models and the data."""
    return (results.read(describe_tests, "ablation_facts"), *describe_models(results))


def describe_ranked(results: Results) -> tuple[str, ...]:
    """`describe_scored`, what of it pruning is scored on, how heads were ranked, and counted."""
    words = describe_ranking(results.settings["ablation"], results.ranking)
    return (*describe_scored(results), FIRST_ALONE, words, WHOLE_HEADS)
