"""The table of BLEU and chrF over all runs, and its means for `dvc metrics`."""

from pathlib import Path
from typing import Any

import pandas as pd

from headcount.findings import exhibits
from headcount.findings.masked_training import warn_of_collapse
from headcount.findings.results import BASE, Results, gather
from headcount.findings.scores import describe_search, read_scores
from headcount.findings.tables import NONE, Table

COLUMNS = ["pair", "run", "seed", "test_set", "metric", "score", "signature"]
COLUMNS += ["engine", "beam", "length_penalty", "sentences", "truncated", "capped"]
_CAPTION = "Scores of every run on every test set: means over seeds, and how far seeds differ."
_FEW = 0.01  # of a test set's sentences, up to which cutting some off is worth no warning
_TITLES = {"bleu": "BLEU", "chrf": "chrF", "bleu_tok_lc": "tokenised lower-cased BLEU"}


@exhibits.table(
    "bleu", needs=("scores",), uses=("pruned_scores", "trained_runs", "masks", "curves")
)
def bleu(results: Results) -> Table:
    """BLEU and chrF of every run."""
    table = _scores(results)
    signatures = f"Signatures: {'; '.join(table['signature'].unique())}."
    search = describe_search([*results.files("scores"), *results.files("pruned_scores")])
    collapsed = warn_of_collapse(results, set(table["pair"]))
    warnings = (*collapsed, *_cut(table), *_doubts(results.files("scores")))
    return Table(table, summary(table), _CAPTION, (signatures, search), warnings)


def _cut(table: pd.DataFrame) -> tuple[str, ...]:
    """A warning for each run and test set of which many sentences or translations were cut off."""
    bleu = table[table["metric"] == "bleu"]
    many = bleu[["truncated", "capped"]].max(axis=1) > _FEW * bleu["sentences"]
    found = []
    for row in bleu[many].itertuples():
        found.append(
            f"{row.run}, seed {row.seed}, {row.test_set} of {row.pair}: sentences cut before they "
            f"were translated: {row.truncated} of {row.sentences}; translations at the limit on "
            f"their length: {row.capped}."
        )
    return tuple(found)


def _doubts(files: list[Path]) -> tuple[str, ...]:
    """Return the warnings in bleu.json of every baseline, which are about its languages."""
    return tuple(
        f"{BASE}, seed {found['seed']} of {found['pair']}, {words}."
        for found in map(read_scores, files)
        for words in found.get("warnings", [])
        if found["run"] == BASE
    )


@exhibits.numbers("metrics", needs=(), uses=("scores", "pruned_scores", "classifier_ablation"))
def metrics(results: Results) -> dict[str, Any]:
    """Mean scores of every run."""
    columns = ["test_set", "order", "accuracy"]
    ablated = gather(results.files("classifier_ablation"), columns)
    whole = ablated[ablated["order"] == "none"].rename(columns={"accuracy": "score"})
    return mean_scores(pd.concat([_scores(results), whole.assign(metric="accuracy")]))


def _scores(results: Results) -> pd.DataFrame:
    return score_table([*results.files("scores"), *results.files("pruned_scores")])


def score_table(files: list[Path]) -> pd.DataFrame:
    """One score a row, from the `bleu.json` of every run: the columns of `COLUMNS`."""
    rows = []
    for path in files:
        found = read_scores(path)
        head = {key: found[key] for key in ("pair", "run", "seed")}
        rows += [head | score for score in found["scores"]]
    return pd.DataFrame(rows, columns=COLUMNS)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per pair, run and test set, means over seeds.

    If some run has several seeds, a second column per metric gives their standard deviation (ddof
    1), a dash for a run of one.
    """
    keys = ["pair", "run", "test_set"]
    groups = table.groupby([*keys, "metric"], sort=False)["score"].agg(["mean", "std", "count"])
    several = groups["count"].max() > 1
    frame = pd.DataFrame(index=pd.MultiIndex.from_frame(table[keys].drop_duplicates()))
    for metric in table["metric"].unique():
        of_metric, title = groups.xs(metric, level="metric"), _TITLES[metric]
        frame[title] = of_metric["mean"]
        if several:
            deviation = of_metric["std"].astype(object)
            frame[f"{title} ± (seeds)"] = deviation.where(deviation.notna(), NONE)
    frame["seeds"] = groups.xs("bleu", level="metric")["count"]
    return frame.reset_index()


def mean_scores(table: pd.DataFrame) -> dict[str, Any]:
    """Mean scores over seeds, nested by pair, run, test set and metric; points, 0–100."""
    nested: dict[str, Any] = {}
    keys = ["pair", "run", "test_set", "metric"]
    for (pair, run, test, metric), score in table.groupby(keys, sort=False)["score"].mean().items():
        tests = nested.setdefault(pair, {}).setdefault(run, {}).setdefault(test, {})
        tests[metric] = round(float(score), 2)
    return nested
