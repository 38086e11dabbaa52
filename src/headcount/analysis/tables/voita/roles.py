"""Roles of encoder heads (Voita et al., figures 1 to 5 and 8), and agreement of measures."""

from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd

from headcount.analysis import frames, stats
from headcount.analysis import measures as of_heads
from headcount.analysis.captions import note, shared_notes
from headcount.analysis.frames import BASE, HEAD, RUN, Data, FrameOf, Runs, Settings
from headcount.analysis.published import voita
from headcount.base.addresses import KINDS, Head
from headcount.base.settings.runs import RANDOM_WEIGHTS
from headcount.base.settings.training_runs import BASELINE
from headcount.data.words import LANGUAGE

RELEVANCE = ["relevance", "relevance_low", "relevance_high"]
MAP = [*RUN, "layer", "rank", "head", "relevance", "confidence", "function"]
FUNCTIONS = ("positional", "positional and syntactic", "syntactic", "rare", "positional and rare")
FUNCTIONS += ("rare and syntactic", "positional and rare and syntactic", "rare or unknown")
FUNCTIONS += ("unknown",)
SINKS = ["sink_special", "sink_code", "sink_punctuation", "confidence", "confidence_content"]
SINKS += ["entropy", "entropy_content", "content"]
_MAPS = 3  # as in the paper's Figure 5
_TEST = ["treebank", "relation", "direction"]
_COLUMNS = [*RUN, *_TEST, "layer", "head", "accuracy", "low", "high", "held_out", "baseline"]
_COLUMNS += ["margin", "p", "heads_above", "trials", "offset"]
_POINTS = ["pair", "run", *_TEST, "accuracy", "low", "high", "baseline", "seed"]
_AGREEMENT = [*RUN, "kind", "scope", "first", "second", "heads", "spearman", "low", "high", "p"]
_WITHIN = "within layers"
_SHUFFLES = 1999


def every_head(
    roles: FrameOf[of_heads.encoder_roles],
    relevance: pd.DataFrame,
    importance: pd.DataFrame,
    survival: FrameOf[of_heads.survival],
    trained_runs: Runs,
) -> pd.DataFrame:
    """Return all encoder heads of trained models, the most relevant head of a layer first."""
    others = of_heads.wide(relevance, RELEVANCE), of_heads.wide(importance, ["importance"])
    heads = roles[roles["run"].isin(list(trained_runs))]
    heads = heads.assign(model=heads.groupby(RUN, sort=False).ngroup())
    for other in (*others, survival.rename(columns={"value": "survival"})):
        heads = heads.merge(other, "left", of_heads.KEYS)
    sizes = heads["relevance"].abs().groupby([heads["model"], heads["layer"]])
    heads["rank"] = sizes.rank(ascending=False, method="first").astype(int)
    columns = [*of_heads.KEYS, "rank", "function", *RELEVANCE, *of_heads.ATTENTION]
    columns += ["importance", "survival"]
    columns += ["content"] * bool(heads["content"].notna().any())  # older files have no sinks
    heads["_content"] = heads["content"].map({1: "yes"})
    ordered = heads.sort_values(["model", "layer", "rank"], ignore_index=True)
    return ordered[[*columns, "offset", "share", "_content"]]


def sinks(attention: pd.DataFrame, positions: pd.DataFrame) -> pd.DataFrame:
    """Return the shares of attention on sinks, and measures of heads with and without sinks."""
    heads = of_heads.wide(attention, SINKS).dropna(subset="sink_special")
    for statistic in ("share", "share_content"):
        offset = statistic.replace("share", "offset")
        most = of_heads.preferred(positions, statistic)
        most = most.rename(columns={"value": statistic, "offset": offset})
        heads = heads.merge(most[[*of_heads.KEYS, offset, statistic]], "left", of_heads.KEYS)
    return heads.assign(_content=heads["content"].map({1: "yes"}))


@note
def without_sinks(roles: FrameOf[of_heads.encoder_roles]) -> str:
    """Return a sentence on heads whose numbers are over content words, if there are any."""
    return shared_notes()["sinks"] if (roles["content"] == 1).any() else ""


def head_maps(
    heads: FrameOf[every_head], trained_runs: Runs, masked: bool, pairs: list[str]
) -> pd.DataFrame:
    """Return heads by layer and rank: of runs with masks or of the baseline, then the paper's."""
    masking = [name for name, run in trained_runs.items() if run.method != BASELINE.method]
    ours = heads[heads["run"].isin(masking if masked else [BASE])]
    paper = voita.ranked_heads()
    maps = frames.with_paper(
        ours[MAP], paper[paper["pair"].isin(pairs)].assign(layer=paper["layer"] - 1)
    )
    lines = maps["function"].fillna("").str.replace("-", "−").str.split(", ")
    return maps.assign(_function=lines.str[:2].str.join("\n"))


def relevance_and_confidence(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row for relevance and one for confidence of every head."""
    others = frame.columns.drop(["relevance", "confidence"])
    return frame.melt(others, var_name="measure").dropna(subset="value")


def rare_word_maps(sentence_maps: list[Path], attention: pd.DataFrame) -> pd.DataFrame:
    """Return the attention of the candidate for the rare-word head on short sentences.

    The candidate of a model is the head of the first encoder layer with most of its largest weights
    at the two rarest subwords. There are up to three maps, from the baselines of all pairs. Those
    of one model, whose sentences begin with a language's mark, are of different sentences.
    """
    first = attention[(attention["statistic"] == "rare_two_rarest") & (attention["layer"] == 0)]
    heads = first.sort_values("value", ascending=False, kind="stable").drop_duplicates(RUN)
    models = pd.DataFrame(
        [(*frames.run_of(path), path) for path in sentence_maps], columns=[*RUN, "path"]
    )
    models = models.sort_values("run", key=lambda run: run != BASE, kind="stable")
    models = models.merge(heads, on=RUN).drop_duplicates("pair")
    maps = [
        (number, model, sentence)
        for model in models.to_dict("records")
        for number, sentence in enumerate(of_heads.read_sentences(model["path"]), 1)
    ]
    rows = []
    for number, model, sentence in _distinct(maps)[:_MAPS]:
        name, words = Head(*(model[key] for key in HEAD)).name(), sentence["source"]
        for query, weights in zip(words, sentence["weights"][name], strict=True):
            for place, (key, weight) in enumerate(zip(words, weights, strict=True), 1):
                rows.append((*(model[k] for k in RUN), name, number, query, place, key, weight))
    return pd.DataFrame(rows, columns=[*RUN, "head", "sentence", "query", "place", "key", "weight"])


def _distinct(maps: list[tuple[int, dict, dict]]) -> list[tuple[int, dict, dict]]:
    """Return maps by number, and of those that differ only in a language's mark the first."""
    first: dict[tuple, tuple[int, dict, dict]] = {}
    for number, model, sentence in sorted(maps, key=lambda numbered: numbered[0]):
        mark, *words = sentence["source"]
        key = tuple(words) if mark.startswith(LANGUAGE) else (model["pair"], number)
        first.setdefault(key, (number, model, sentence))
    return list(first.values())


def functions_left(
    roles: FrameOf[of_heads.encoder_roles], pruned_runs: Runs, data: Data
) -> pd.DataFrame:
    """Return the number of encoder heads with every function, for trained and pruned models."""
    count = roles["function"].str.count(", ").add(1).fillna(0)
    kinds = [" and ".join(of_heads.classes(labels)) or "unknown" for labels in roles["function"]]
    heads = roles.assign(function=kinds, heads=1, several=count > 1, labels=count)
    counts = ["heads", "several", "labels"]
    sums = heads.groupby([*RUN, "function"])[counts].sum().reset_index()
    paths = [path for kind in ("attention", "pruned_attention") for path in data.files(kind)]
    models = pd.DataFrame([frames.run_of(path) for path in paths], columns=RUN)
    table = models.merge(pd.DataFrame({"function": FUNCTIONS}), "cross").merge(sums, "left")
    table[counts] = table[counts].fillna(0).astype(int)
    table["heads_left"] = table.groupby(RUN)["heads"].transform("sum")
    pruned = {name: (run.scope, run.start) for name, run in pruned_runs.items()}
    table[["scope", "start"]] = [pruned.get(run, (None, run)) for run in table["run"]]
    columns = [*RUN, "scope", "start", "heads_left", "function", *counts]
    paper = voita.table("figure8", "heads").assign(pair="opensubtitles.en-ru", scope="enc_self")
    return frames.with_paper(table[columns], paper)


def sweeps(frame: pd.DataFrame) -> pd.DataFrame:
    """Return stacked bars of the models of every sweep over λ, and of the model before pruning."""
    pruned, parts = frame[frame["scope"].notna()], []
    keys = ["source", "pair", "start", "scope"]
    for (_, pair, start, scope), rows in pruned.groupby(keys, sort=False, dropna=False):
        trained = BASE if start == RANDOM_WEIGHTS else start
        whole = frame["run"].eq(trained) & frame["pair"].eq(pair) & frame["scope"].isna()
        bars = pd.concat([frame[whole], rows]).assign(start=start, scope=scope)
        bars = bars.sort_values("heads_left", ascending=False, kind="stable")
        number = bars.groupby(["heads_left", *RUN], sort=False, dropna=False).ngroup()
        top = bars["heads"].groupby(number).cumsum()
        parts.append(bars.assign(bar=number, bottom=top - bars["heads"]))
    return pd.concat(parts)


def best_heads(syntax: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Return the best encoder head of every model, treebank and relation, with McNemar's p."""
    rows = syntax.assign(above=of_heads.exceeds(syntax, settings["roles"]))
    tests = rows.groupby([*RUN, *_TEST], sort=False)
    best = rows.loc[tests["hits"].idxmax()].reset_index(drop=True)
    half = rows.loc[tests["half_hits"].idxmax()].reset_index(drop=True)
    ends = [stats.wilson(*counts) for counts in best[["hits", "trials"]].to_numpy(int)]
    best["p"] = [
        stats.mcnemar(*only) for only in best[["head_only", "baseline_only"]].to_numpy(int)
    ]
    best["p"] = (best["p"] * tests.size().to_numpy()).clip(upper=1)
    best[["low", "high"]] = pd.DataFrame(ends, columns=["low", "high"])
    best["held_out"] = (half["hits"] - half["half_hits"]) / (half["trials"] - half["half_trials"])
    best["baseline"] = best["baseline_hits"] / best["trials"]
    best["heads_above"] = tests["above"].sum().to_numpy()
    best["margin"] = best["value"] - best["baseline"]
    best = best.rename(columns={"value": "accuracy"})[_COLUMNS]
    table = frames.with_paper(best, voita.dependency_scores())
    return table.assign(_arrow=list(map(of_heads.arrow, table["relation"], table["direction"])))


@note
def no_trees(frame: pd.DataFrame, attention: pd.DataFrame) -> str:
    """Return a sentence that names the pairs without a treebank in their source language."""
    pairs = [pair for pair in attention["pair"].unique() if pair not in set(frame["pair"])]
    return f"No treebank in the source language: {', '.join(pairs)}." if pairs else ""


def on_first_treebanks(best: FrameOf[best_heads]) -> pd.DataFrame:
    """Return the best heads of every model on its first treebank, then the paper's."""
    ours = of_heads.on_first_treebank(best[best["source"] == "ours"]).astype({"seed": int})
    paper = voita.dependency_scores_by_pair().assign(treebank="wmt")
    points = frames.with_paper(ours[_POINTS], paper)
    runs = points["run"].astype("str")
    runs = points["pair"] + ", " + runs if ours["pair"].nunique() > 1 else runs
    points["_model"] = runs.fillna(points["pair"])
    arrows = list(map(of_heads.arrow, points["relation"], points["direction"]))
    points["_test"] = points["relation"] + "\n" + arrows
    return points[[*_POINTS[:-1], "source", "seed", "_model", "_test"]]


def dependent_positions(trees: list[Path], settings: Settings) -> pd.DataFrame:
    """Return shares of dependents at relative positions, by treebank, then the paper's."""
    columns = ["pair", "treebank", "relation", "offset", "count", "share"]
    tables = [pd.DataFrame(columns=columns)] * (not trees) + [
        pd.read_csv(path).assign(pair=path.parent.parent.name, treebank=path.stem) for path in trees
    ]
    arcs = pd.concat(tables, ignore_index=True)
    arcs["share"] = arcs["count"] / arcs.groupby(columns[:3])["count"].transform("sum")
    paper = voita.table("figure3", "share").assign(pair="wmt", treebank="wmt")
    table = frames.with_paper(arcs[columns], paper)
    return table[table["relation"].isin(settings["roles"].relations)]


def agreement(measures: FrameOf[of_heads.all_measures]) -> pd.DataFrame:
    """Return rank correlations of measures, by model, attention type and scope."""
    table = measures.pivot_table("value", [*RUN, *HEAD], "measure", sort=False)
    titles = {
        name: m.title for name, m in of_heads.MEASURES.items() if m.compared and name in table
    }
    rows = []
    for run, model in table.groupby(RUN, sort=False):
        kinds = model.index.get_level_values("kind")
        groups = {"all": model} | {kind: model[kinds == kind] for kind in KINDS}
        for (kind, heads), pair in product(groups.items(), combinations(titles, 2)):
            both = heads[list(pair)].dropna()
            for scope in (_WITHIN, "all heads") if len(both) > 2 else ():
                rows.append((*run, kind, scope, *pair, len(both), *_compare(both, scope)))
    frame = pd.DataFrame(rows, columns=_AGREEMENT)
    return frame.assign(_first=frame["first"].map(titles), _second=frame["second"].map(titles))


def _compare(both: pd.DataFrame, scope: str) -> tuple[float, float, float, float]:
    """Return rank correlation, its interval and p, missing if a measure is constant."""
    kinds, layers = (both.index.get_level_values(name) for name in ("kind", "layer"))
    blocks = pd.Series(kinds + layers.astype(str) if scope == _WITHIN else "", both.index)
    sides = [stats.ranks_within(both[name], blocks).to_numpy() for name in both]
    if any(np.ptp(side) == 0 for side in sides):
        return (np.nan,) * 4
    rho = float(np.corrcoef(*sides)[0, 1])
    p = stats.shuffled_p(*sides, blocks.to_numpy(str), _SHUFFLES)
    return rho, *stats.bootstrap_correlation(*sides, ranks=scope != _WITHIN), p
