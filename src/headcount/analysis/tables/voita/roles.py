"""Roles of encoder heads (Voita et al., figures 1, 2, 5 and 8)."""

from pathlib import Path

import pandas as pd

from headcount.analysis.frames import BASE, HEAD, RUN, Data, FrameOf, Runs, run_of, with_paper
from headcount.analysis.measures import survival
from headcount.analysis.published import voita
from headcount.analysis.roles import ATTENTION, KEYS, classes, encoder_roles, read_sentences, wide
from headcount.base.addresses import Head
from headcount.base.settings.runs import RANDOM_WEIGHTS
from headcount.base.settings.training_runs import BASELINE

RELEVANCE = ["relevance", "relevance_low", "relevance_high"]
MAP = [*RUN, "layer", "rank", "head", "relevance", "confidence", "function"]
FUNCTIONS = ("positional", "positional and syntactic", "syntactic", "rare", "positional and rare")
FUNCTIONS += ("rare and syntactic", "positional and rare and syntactic", "rare or unknown")
FUNCTIONS += ("unknown",)
_MAPS = 3  # as in the paper's Figure 5


def every_head(
    roles: FrameOf[encoder_roles],
    relevance: pd.DataFrame,
    importance: pd.DataFrame,
    survival: FrameOf[survival],
    trained_runs: Runs,
) -> pd.DataFrame:
    """Return all encoder heads of trained models, the most relevant head of a layer first."""
    others = wide(relevance, RELEVANCE), wide(importance, ["importance"])
    heads = roles[roles["run"].isin(list(trained_runs))]
    heads = heads.assign(model=heads.groupby(RUN, sort=False).ngroup())
    for other in (*others, survival.rename(columns={"value": "survival"})):
        heads = heads.merge(other, "left", KEYS)
    sizes = heads["relevance"].abs().groupby([heads["model"], heads["layer"]])
    heads["rank"] = sizes.rank(ascending=False, method="first").astype(int)
    columns = [*KEYS, "rank", "function", *RELEVANCE, *ATTENTION, "importance", "survival"]
    ordered = heads.sort_values(["model", "layer", "rank"], ignore_index=True)
    return ordered[[*columns, "offset", "share"]]


def head_maps(
    heads: FrameOf[every_head], trained_runs: Runs, masked: bool, pairs: list[str]
) -> pd.DataFrame:
    """Return heads by layer and rank: of runs with masks or of the baseline, then the paper's."""
    masking = [name for name, run in trained_runs.items() if run.method != BASELINE.method]
    ours = heads[heads["run"].isin(masking if masked else [BASE])]
    paper = voita.ranked_heads()
    maps = with_paper(ours[MAP], paper[paper["pair"].isin(pairs)].assign(layer=paper["layer"] - 1))
    lines = maps["function"].fillna("").str.replace("-", "−").str.split(", ")
    return maps.assign(_function=lines.str[:2].str.join("\n"))


def rare_word_maps(sentence_maps: list[Path], attention: pd.DataFrame) -> pd.DataFrame:
    """Return the attention of the candidate for the rare-word head on short sentences.

    The candidate of a model is the head of the first encoder layer with most of its largest weights
    at the two rarest subwords. There are up to three maps, from the baselines of all pairs.
    """
    first = attention[(attention["statistic"] == "rare_two_rarest") & (attention["layer"] == 0)]
    heads = first.sort_values("value", ascending=False, kind="stable").drop_duplicates(RUN)
    models = pd.DataFrame([(*run_of(path), path) for path in sentence_maps], columns=[*RUN, "path"])
    models = models.sort_values("run", key=lambda run: run != BASE, kind="stable")
    models = models.merge(heads, on=RUN).drop_duplicates("pair")
    maps = [
        (number, model, sentence)
        for model in models.to_dict("records")
        for number, sentence in enumerate(read_sentences(model["path"]), 1)
    ]
    rows = []
    for number, model, sentence in sorted(maps, key=lambda numbered: numbered[0])[:_MAPS]:
        name, words = Head(*(model[key] for key in HEAD)).name(), sentence["source"]
        for query, weights in zip(words, sentence["weights"][name], strict=True):
            for place, (key, weight) in enumerate(zip(words, weights, strict=True), 1):
                rows.append((*(model[k] for k in RUN), name, number, query, place, key, weight))
    return pd.DataFrame(rows, columns=[*RUN, "head", "sentence", "query", "place", "key", "weight"])


def functions_left(roles: FrameOf[encoder_roles], pruned_runs: Runs, data: Data) -> pd.DataFrame:
    """Return the number of encoder heads with every function, for trained and pruned models."""
    count = roles["function"].str.count(", ").add(1).fillna(0)
    kinds = [" and ".join(classes(labels)) or "unknown" for labels in roles["function"]]
    heads = roles.assign(function=kinds, heads=1, several=count > 1, labels=count)
    counts = ["heads", "several", "labels"]
    sums = heads.groupby([*RUN, "function"])[counts].sum().reset_index()
    paths = [path for kind in ("attention", "pruned_attention") for path in data.files(kind)]
    models = pd.DataFrame([run_of(path) for path in paths], columns=RUN)
    table = models.merge(pd.DataFrame({"function": FUNCTIONS}), "cross").merge(sums, "left")
    table[counts] = table[counts].fillna(0).astype(int)
    table["heads_left"] = table.groupby(RUN)["heads"].transform("sum")
    pruned = {name: (run.scope, run.start) for name, run in pruned_runs.items()}
    table[["scope", "start"]] = [pruned.get(run, (None, run)) for run in table["run"]]
    columns = [*RUN, "scope", "start", "heads_left", "function", *counts]
    paper = voita.table("figure8", "heads").assign(pair="opensubtitles.en-ru", scope="enc_self")
    return with_paper(table[columns], paper)


def sweeps(frame: pd.DataFrame) -> pd.DataFrame:
    """Return stacked bars of the models of every sweep over λ, and of the model before pruning.

    Gates from random weights prune no model, and stand beside the baseline.
    """
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
