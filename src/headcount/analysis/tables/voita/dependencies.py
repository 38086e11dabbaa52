"""Dependency relations of encoder heads (Voita et al., table 1, figures 3 and 4)."""

from pathlib import Path

import pandas as pd

from headcount.analysis.captions import note
from headcount.analysis.collapse import collapse_labels, collapses
from headcount.analysis.frames import RUN, FrameOf, Settings, with_paper
from headcount.analysis.published import voita
from headcount.analysis.roles import arrow, exceeds, on_first_treebank
from headcount.analysis.stats import mcnemar, wilson

_TEST = ["treebank", "relation", "direction"]
_COLUMNS = [*RUN, *_TEST, "layer", "head", "accuracy", "low", "high", "held_out", "baseline"]
_COLUMNS += ["margin", "p", "heads_above", "trials", "offset"]
_POINTS = ["pair", "run", *_TEST, "accuracy", "low", "high", "baseline", "seed"]


def best_heads(syntax: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Return the best encoder head of every model, treebank, relation and direction.

    p: McNemar's against the positional baseline, times the number of heads.
    """
    rows = syntax.assign(above=exceeds(syntax, settings["roles"]))
    tests = rows.groupby([*RUN, *_TEST], sort=False)
    best = rows.loc[tests["hits"].idxmax()].reset_index(drop=True)
    half = rows.loc[tests["half_hits"].idxmax()].reset_index(drop=True)
    ends = [wilson(*counts) for counts in best[["hits", "trials"]].to_numpy(int)]
    best["p"] = [mcnemar(*only) for only in best[["head_only", "baseline_only"]].to_numpy(int)]
    best["p"] = (best["p"] * tests.size().to_numpy()).clip(upper=1)
    best[["low", "high"]] = pd.DataFrame(ends, columns=["low", "high"])
    best["held_out"] = (half["hits"] - half["half_hits"]) / (half["trials"] - half["half_trials"])
    best["baseline"] = best["baseline_hits"] / best["trials"]
    best["heads_above"] = tests["above"].sum().to_numpy()
    best["margin"] = best["value"] - best["baseline"]
    best = best.rename(columns={"value": "accuracy"})[_COLUMNS]
    table = with_paper(best, voita.dependency_scores())
    return table.assign(_arrow=list(map(arrow, table["relation"], table["direction"])))


@note
def no_trees(frame: pd.DataFrame, attention: pd.DataFrame) -> str:
    """Return a sentence that names the pairs without a treebank in their source language."""
    pairs = [pair for pair in attention["pair"].unique() if pair not in set(frame["pair"])]
    return f"No treebank in the source language: {', '.join(pairs)}." if pairs else ""


def on_first_treebanks(best: FrameOf[best_heads], collapsed: FrameOf[collapses]) -> pd.DataFrame:
    """Return the best heads of every model on its first treebank, then the paper's."""
    ours = on_first_treebank(best[best["source"] == "ours"]).astype({"seed": int})
    labels = collapse_labels(ours, collapsed)
    paper = voita.dependency_scores_by_pair().assign(treebank="wmt")
    points = with_paper(ours[_POINTS], paper)
    labels = {run: f"{run} ({text})" for run, text in labels.items()}
    runs = points["run"].astype("str").replace(labels)
    runs = points["pair"] + ", " + runs if ours["pair"].nunique() > 1 else runs
    points["_model"] = runs.fillna(points["pair"])
    arrows = list(map(arrow, points["relation"], points["direction"]))
    points["_test"] = points["relation"] + "\n" + arrows
    return points[[*_POINTS[:-1], "source", "seed", "_model", "_test"]]


def dependent_positions(trees: list[Path], settings: Settings) -> pd.DataFrame:
    """Return shares of dependents at relative positions, by treebank, then the paper's."""
    columns = ["pair", "treebank", "relation", "offset", "count", "share"]
    frames = [pd.DataFrame(columns=columns)] * (not trees) + [
        pd.read_csv(path).assign(pair=path.parent.parent.name, treebank=path.stem) for path in trees
    ]
    arcs = pd.concat(frames, ignore_index=True)
    arcs["share"] = arcs["count"] / arcs.groupby(columns[:3])["count"].transform("sum")
    paper = voita.table("figure3", "share").assign(pair="wmt", treebank="wmt")
    table = with_paper(arcs[columns], paper)
    return table[table["relation"].isin(settings["roles"].relations)]
