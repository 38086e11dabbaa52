"""Tables and figures on the roles of encoder heads and on dependency relations."""

import json
from pathlib import Path

import named_runs
import pandas as pd
import pytest
from scipy.stats import binomtest

from headcount.analysis.figures.special import attention_maps
from headcount.analysis.frames import Data
from headcount.analysis.measures import ATTENTION, KEYS
from headcount.analysis.tables.voita import roles as tables
from headcount.base.settings.heads import RolesSettings

PRUNED = named_runs.RUNS["gates-enc_self-l0.3"]
SCRATCH = named_runs.RUNS["gates-all-l0.1-from-none"]
RUNS = {name: named_runs.RUNS[name] for name in ("random-1", "baseline")}
SETTINGS = {"roles": RolesSettings()}


def roles(*rows: tuple) -> pd.DataFrame:
    """Return labelled heads: run, layer, head and function."""
    frame = pd.DataFrame(rows, columns=["run", "layer", "head", "function"])
    frame[["pair", "seed", "kind", "offset", "share"]] = ["p", 1, "enc_self", -1, 0.5]
    return frame.assign(**dict.fromkeys(ATTENTION, 0.25), content=float("nan"))


def relevance(heads: pd.DataFrame, values: list[float]) -> pd.DataFrame:
    return heads[KEYS].assign(statistic="relevance", value=values)


def test_heads_are_ranked_in_their_layer_by_the_size_of_relevance() -> None:
    heads = roles(
        ("random-1", 0, 0, "rare"), ("random-1", 0, 1, None), ("baseline", 0, 0, None),
        ("baseline", 0, 1, None), (PRUNED.label, 0, 0, None),
    )  # fmt: skip
    left = heads[KEYS].iloc[:1].assign(value=0.5)
    nothing = relevance(heads[:0], [])
    table = tables.every_head(heads, relevance(heads, [0.3, -0.7, 1, 0, 1]), nothing, left, RUNS)
    assert table[["run", "head", "rank", "relevance"]].to_numpy().tolist() == [
        ["random-1", 1, 1, -0.7], ["random-1", 0, 2, 0.3],
        ["baseline", 0, 1, 1], ["baseline", 1, 2, 0],
    ]  # fmt: skip
    assert table["survival"].tolist()[1] == 0.5 and table["importance"].isna().all()
    # Older files have no sinks, and then the CSV has no column of them.
    assert "content" not in table and table["_content"].isna().all()
    sunk = heads.assign(content=[1, 0, 0, 0, 0])
    table = tables.every_head(sunk, relevance(heads, [0.3, -0.7, 1, 0, 1]), nothing, left, RUNS)
    assert table["content"].tolist() == [0, 1, 0, 0]
    assert tables.without_sinks(heads) == "" and "content words" in tables.without_sinks(sunk)


def test_sinks_have_positions_over_all_words_and_over_content_words() -> None:
    shares = {"sink_special": 0.6, "sink_code": 0, "confidence": 0.1, "content": 1}
    head = dict(zip(KEYS, ("p", "baseline", 1, "dec_self", 0, 0), strict=True))
    attention = pd.DataFrame([head | {"statistic": k, "value": v} for k, v in shares.items()])
    older = attention.assign(run="older", statistic="confidence")
    rows = [("share", 0, 0.2, 2, 0), ("share", 1, 0.3, 3, 0), ("share_content", -1, 0.9, 9, 1)]
    names = ["statistic", "offset", "value", "hits", "counted"]
    positions = pd.DataFrame([head | dict(zip(names, row, strict=True)) for row in rows])
    table = tables.sinks(pd.concat([attention, older]), positions)
    (row,) = table.to_dict("records")
    assert (row["sink_special"], row["confidence"], row["_content"]) == (0.6, 0.1, "yes")
    assert (row["offset"], row["share"]) == (1, 0.3)
    assert (row["offset_content"], row["share_content"]) == (-1, 0.9)


def test_maps_are_of_baselines_or_of_runs_with_masks_beside_the_paper() -> None:
    heads = roles(("random-1", 0, 0, "-1, v→s, v→o"), ("baseline", 0, 0, None))
    heads = heads.assign(rank=1, relevance=[0.3, 0.4])
    plain = tables.head_maps(heads, RUNS, False, ["opensubtitles.en-ru"])
    assert plain["run"].dropna().tolist() == ["baseline"] and len(plain) == 1 + 48
    names = ["layer", "rank", "relevance", "confidence", "function"]
    assert plain.iloc[1][names].tolist() == [0, 1, 0.184, 0.305, "rare"]
    masked = tables.head_maps(heads, RUNS, True, ["wmt.en-de"])
    assert masked["run"].dropna().tolist() == ["random-1"]
    assert masked["_function"].tolist()[:2] == ["−1\nv→s", "rare"]


def test_maps_of_rare_words_take_turns_between_pairs(tmp_path: Path) -> None:
    weights = {"enc_self.0.0": [[9, 9], [9, 9]], "enc_self.0.1": [[1, 0], [0.5, 0.5]]}
    line = json.dumps({"source": ["a", "b"], "weights": weights})
    paths, rows = [], []
    for pair, run, count in (("p", "random-1", 1), ("p", "baseline", 3), ("q", "random-1", 2)):
        paths.append(tmp_path / pair / run / "seed1" / "sentences.jsonl")
        paths[-1].parent.mkdir(parents=True)
        paths[-1].write_text(f"{line}\n" * count)
        for layer, head, share in ((0, 0, 0.1), (0, 1, 0.4), (1, 0, 0.9)):
            rows.append((pair, run, 1, "enc_self", layer, head, "rare_two_rarest", share))
    attention = pd.DataFrame(rows, columns=[*KEYS, "statistic", "value"])
    maps = tables.rare_word_maps(paths, attention)
    shown = maps[["pair", "run", "sentence"]].drop_duplicates().to_numpy().tolist()
    assert shown == [["p", "baseline", 1], ["q", "random-1", 1], ["p", "baseline", 2]]
    cells = maps[["query", "place", "key", "weight"]][:4].to_numpy().tolist()
    assert cells == [["a", 1, "a", 1], ["a", 2, "b", 0], ["b", 1, "a", 0.5], ["b", 2, "b", 0.5]]
    figure = attention_maps(maps)
    assert figure.axes[1].get_title(loc="left") == "q\nenc_self.0.1, sentence 1"
    assert figure.axes[0].get_images()[0].get_array().tolist() == [[1, 0], [0.5, 0.5]]
    assert tables.rare_word_maps(paths, attention[:0]).empty
    # One model: what p and q have in common is shown once, and the second sentence of p after it.
    for path, mark in zip(paths, ("<2p>", "<2p>", "<2q>"), strict=True):
        other = line.replace('"a", "b"', f'"{mark}", "b"')
        path.write_text(f"{other}\n{other.replace('b', 'c')}\n")
    maps = tables.rare_word_maps(paths, attention)
    shown = maps[["pair", "sentence"]].drop_duplicates().to_numpy().tolist()
    assert shown == [["p", 1], ["p", 2]]


def left(*names: str) -> pd.DataFrame:
    """Return functions of heads: two of the baseline, one of a pruned run, none of `names`."""
    runs = ("baseline", PRUNED.label, *names)
    paths = [Path(f"p/{run}/seed1/attention.csv") for run in runs]
    data = Data({"attention": paths[:1], "pruned_attention": paths[1:]}, {})
    heads = roles(
        ("baseline", 0, 0, "v→s, -1"), ("baseline", 0, 1, None), (PRUNED.label, 0, 0, "rare"),
    )  # fmt: skip
    return tables.functions_left(heads, {run.label: run for run in (PRUNED, SCRATCH)}, data)


def test_functions_left_are_counted_and_bars_begin_with_the_whole_model():
    table = left(SCRATCH.label)
    ours = table[table["source"] == "ours"]
    assert len(ours) == 3 * len(tables.FUNCTIONS)
    counted = ours[ours["heads"] > 0]
    columns = ["run", "start", "heads_left", "function", "heads", "several", "labels"]
    assert counted[columns].to_numpy().tolist() == [
        ["baseline", "baseline", 2, "positional and syntactic", 1, 1, 2],
        ["baseline", "baseline", 2, "unknown", 1, 0, 0],
        [PRUNED.label, "baseline", 1, "rare", 1, 0, 1],
    ]  # fmt: skip
    assert ours["heads_left"].tolist()[-1] == 0
    bars = tables.sweeps(left(SCRATCH.label))
    bars = bars[(bars["source"] == "ours") & (bars["function"] == "unknown")]
    assert bars[["start", "run", "bar", "bottom"]].to_numpy().tolist() == [
        ["baseline", "baseline", 0, 1], ["baseline", PRUNED.label, 1, 1],
        ["random weights", "baseline", 0, 1], ["random weights", SCRATCH.label, 1, 0],
    ]  # fmt: skip


def syntax() -> pd.DataFrame:
    """Return two heads on two treebanks: 80 and 55 of 100 for obj; 20 and 30 of 100 for nsubj."""
    columns = ["treebank", "relation", "head", "hits", "half_hits", "head_only", "baseline_only"]
    rows = [
        ("a", "obj", 0, 80, 50, 45, 5), ("a", "obj", 1, 55, 20, 20, 5),
        ("b", "nsubj", 0, 20, 15, 0, 20), ("b", "nsubj", 1, 30, 10, 5, 15),
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=columns).assign(pair="p", run="baseline", seed=1)
    frame["value"] = frame["hits"] / 100
    fixed = {"layer": 0, "direction": "to_dependent", "offset": 1, "half_trials": 60}
    return frame.assign(**fixed, trials=100, baseline_hits=40)


def test_the_best_head_of_each_relation_is_compared_with_the_baseline() -> None:
    table = tables.best_heads(syntax(), SETTINGS)
    first, second, *_ = table.to_dict("records")
    known = ("head", "accuracy", "baseline", "heads_above")
    assert [first[name] for name in known] == [0, 0.8, 0.4, 2]
    assert first["held_out"] == 30 / 40 and first["margin"] == pytest.approx(0.4)
    assert first["p"] == pytest.approx(2 * binomtest(45, 50).pvalue)  # two heads
    assert first["low"] < 0.8 < first["high"] and first["_arrow"] == "v→o"
    # The best head on half of the sentences, 0 with 15 of 60, has 5 of the other 40.
    assert (second["head"], second["held_out"], second["heads_above"]) == (1, 5 / 40, 0)
    assert second["p"] == pytest.approx(2 * binomtest(5, 20).pvalue)
    paper = table.query("source == 'paper' and relation == 'obj'")
    assert paper["margin"].round(2).tolist() == [0.37, 0.32, 0.15, 0.38]
    attention = pd.DataFrame({"pair": ["p", "q"]})
    assert "q." in tables.no_trees(table, attention)


def test_only_the_first_treebank_is_drawn() -> None:
    best = tables.best_heads(syntax(), SETTINGS)
    points = tables.on_first_treebanks(best)
    names = points[["_model", "_test"]].drop_duplicates("_model").to_numpy().tolist()
    assert names[0] == ["baseline", "obj\nv→o"]
    assert [name for name, _ in names[1:]] == ["wmt.en-ru", "wmt.en-de", "wmt.en-fr"]
    assert (points["source"] == "ours").sum() == 1
    paper = points[points["pair"] == "wmt.en-de"]
    assert paper["baseline"].tolist() == [0.35, 0.35, 0.41, 0.41, 0.72, 0.72, 0.46, 0.46]
    none = tables.on_first_treebanks(best[best["source"] == "paper"])
    assert set(none["source"]) == {"paper"}


def test_positions_of_dependents_are_shares_of_the_arcs_of_a_relation(tmp_path: Path) -> None:
    path = tmp_path / "p" / "trees" / "t.csv"
    path.parent.mkdir(parents=True)
    path.write_text("relation,offset,count\nnsubj,-1,3\nnsubj,2,1\ncase,-1,9\nobj,1,2\n")
    table = tables.dependent_positions([path], SETTINGS)
    ours = table[table["source"] == "ours"]
    assert ours[["treebank", "relation", "offset", "share"]].to_numpy().tolist() == [
        ["t", "nsubj", -1, 0.75], ["t", "nsubj", 2, 0.25], ["t", "obj", 1, 1],
    ]  # fmt: skip
    paper = tables.dependent_positions([], SETTINGS)
    counts = {"nsubj": 8, "advmod": 8, "obj": 5, "amod": 4}
    assert paper["relation"].value_counts().to_dict() == counts
