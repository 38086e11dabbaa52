"""The registry of measures of heads, the labels of encoder heads, and agreement of measures."""

import numpy as np
import pandas as pd
import pytest
from named_runs import RUNS

from headcount.analysis.frames import Data
from headcount.analysis.measures import (
    KEYS,
    all_measures,
    arrow,
    classes,
    encoder_roles,
    exceeds,
    learnt,
    survival,
)
from headcount.analysis.published import voita
from headcount.analysis.tables.voita.roles import _compare, agreement
from headcount.base.settings.heads import RolesSettings
from headcount.base.settings.runs import PrunedSettings

BASE = ("p", "baseline", 1)
HEADS = [("enc_self", 0, 0), ("enc_self", 0, 1), ("enc_self", 1, 0), ("enc_self", 1, 1)]


def given(**frames) -> Data:
    """Return data with frames in place of files."""
    data = Data({}, {"roles": RolesSettings()})
    data._results |= frames
    return data


def values(run=BASE, heads=HEADS, **statistics) -> pd.DataFrame:
    """Return statistics of heads as their files have them."""
    rows = [
        (*run, *head, name, value)
        for name, column in statistics.items()
        for head, value in zip(heads, column, strict=False)
    ]
    return pd.DataFrame(rows, columns=[*KEYS, "statistic", "value"])


def runs(*names: str) -> dict[str, PrunedSettings]:
    settings = [RUNS[name] for name in names]
    return {run.label: run for run in settings}


def test_relevance_counts_by_its_size_and_other_statistics_are_left_out() -> None:
    rows = values(relevance=[-0.7, 0.3], relevance_low=[0, 0], shapley=[-2.0])
    table = all_measures(given(measures=rows))
    assert table[["measure", "head", "value"]].to_numpy().tolist() == [
        ["relevance", 0, 0.7], ["relevance", 1, 0.3], ["shapley", 0, -2],
    ]  # fmt: skip
    assert table[["of", "note"]].isna().all(axis=None)


def test_survival_counts_runs_with_a_penalty_and_the_head_in_scope() -> None:
    names = ["gates-enc_self-l0.2", "gates-all-l0.3", "gates-all-l0", "gates-all-l0.1-from-none"]
    known = runs(*names, "subset-all-k3")
    heads = [*HEADS[:2], ("dec_self", 0, 0)]
    gates = [[1, 0, 1], [0.5, 0, 0], [1, 1, 1], [1, 1, 1], [0, 1, 1]]
    kept = pd.concat(
        values(("p", run, 1), heads, gate=gate) for run, gate in zip(known, gates, strict=True)
    )
    left = survival(kept, known)
    # The decoder head is in the scope of gates-all-l0.3 alone.
    assert left[["kind", "head", "value"]].to_numpy().tolist() == [
        ["enc_self", 0, 1], ["enc_self", 1, 0], ["dec_self", 0, 0],
    ]  # fmt: skip
    assert set(left["run"]) == {"baseline"}
    assert survival(kept, known, "subset")["value"].tolist() == [0, 1, 1]


def test_gates_are_measures_of_the_pruned_model_and_of_its_start() -> None:
    known = runs("gates-all-l0.3", "gates-all-l0.1-from-none")
    kept = pd.concat(values(("p", run, 1), p_zero=[0.25]) for run in known)
    rows = learnt(kept, known, "gates", "p_open")
    trained, scratch = known
    assert rows[["run", "of", "value"]].to_numpy().tolist() == [
        [trained, trained, 0.75], [scratch, scratch, 0.75], ["baseline", trained, 0.75],
    ]  # fmt: skip


def test_lost_score_is_of_single_heads_on_the_first_test_set() -> None:
    rows = [
        ("dev", "single", *HEADS[0], -9, -9, -9), ("web", "none", None, None, None, 0, 0, 0),
        ("web", "single", *HEADS[0], -0.25, -1.5, 1), ("web", "all_but_one", *HEADS[1], -7, -8, -6),
        ("web", "single", *HEADS[1], 0.5, -2, 0.75), ("news", "single", *HEADS[0], -3, -4, -2),
    ]  # fmt: skip
    columns = ["test_set", "order", *KEYS[3:], "delta", "delta_low", "delta_high"]
    frame = pd.DataFrame(rows, columns=columns).assign(pair="p", run="baseline", seed=1)
    lost = all_measures(given(ablation=frame))
    assert lost[["measure", "head", "value", "note"]].to_numpy().tolist() == [
        ["bleu_lost", 0, 0.25, "95\u00a0%: -1 to 1.5"],
        ["bleu_lost", 1, -0.5, "95\u00a0%: -0.75 to 2"],
    ]


def positions() -> pd.DataFrame:
    """Return positions of two heads: 0.0 points at -1 in 90 %, 0.1 equally often at 0 and 2."""
    shares = values(heads=[HEADS[0]] * 2 + [HEADS[1]] * 2, share=[0.9, 0.05, 0.5, 0.5])
    return shares.assign(offset=[-1, 1, 0, 2], hits=shares["value"] * 100, trials=100)


def syntax(*rows: tuple) -> pd.DataFrame:
    """Return rows of head, treebank, relation, hits and hits of the baseline, of 100 trials."""
    frame = pd.DataFrame(rows, columns=["at", "treebank", "relation", "hits", "baseline_hits"])
    frame[KEYS] = [(*BASE, *HEADS[at]) for at in frame["at"]]
    return frame.assign(direction="to_dependent", trials=100)


def test_positions_relations_and_masks_are_measures() -> None:
    rows = syntax((0, "t", "obj", 55, 45))
    masks = pd.DataFrame([(*BASE, 4, *HEADS[0], 0.5), (*BASE, 8, *HEADS[0], 1.0)])
    masks.columns = [*KEYS[:3], "step", *KEYS[3:], "masked"]
    table = all_measures(given(positions=positions(), syntax=rows, masks=masks))
    known = table.astype(object).where(table.notna(), None)
    assert known[["measure", "head", "of", "value", "note"]].to_numpy().tolist() == [
        ["position", 0, None, 0.9, "at -1"], ["position", 1, None, 0.5, "at 0"],
        ["syntax", 0, "obj v→o (t)", 10, "accuracy 55\u00a0%"], ["masked", 0, None, 0.75, None],
    ]  # fmt: skip


def test_heads_have_the_labels_that_their_numbers_make() -> None:
    attention = values(confidence=[0.5] * 4, rare_two_rarest=[0.1, 0.5, 0.49, np.nan])
    decoder = values(heads=[("dec_self", 0, 0)], confidence=[0.9])
    # 10 points above the baseline are enough, 9 are not. The second treebank does not count.
    relations = syntax(
        (0, "a", "obj", 55, 45), (0, "a", "nsubj", 54, 45), (1, "b", "amod", 99, 45),
        (2, "a", "amod", 90, 45), (2, "a", "case", 90, 45),
    )  # fmt: skip
    pruned = values(("p", "gates-all-l0.3", 1), confidence=[0.4])
    data = {"attention": pd.concat([attention, decoder]), "positions": positions()}
    heads = encoder_roles(given(**data, syntax=relations, pruned_attention=pruned))
    assert heads["function"].fillna("").tolist() == ["-1, v→o", "rare", "n→a, head→case", "", ""]
    assert heads["offset"].tolist()[:2] == [-1, 0] and heads["share"].tolist()[:2] == [0.9, 0.5]
    assert heads["offset"][2:].isna().all() and heads["run"].iloc[-1] == "gates-all-l0.3"


def test_heads_on_special_tokens_count_by_content_words() -> None:
    named = {"confidence": [0.1, 0.9], "confidence_content": [0.8, 0.3], "content": [1, 0]}
    attention = values(**named, entropy=[2, 1], entropy_content=[1.5, 0.5])
    # Positions over all words of head 0 and over content words of head 1 do not count.
    columns = ["statistic", "head", "offset", "hits", "counted"]
    cells = [
        ("share", 0, 0, 99, 0), ("share_content", 0, -1, 95, 1), ("share_content", 0, 2, 4, 1),
        ("share", 1, 1, 40, 1), ("share_content", 1, 3, 100, 0),
    ]  # fmt: skip
    rows = pd.DataFrame(cells, columns=columns)
    rows[KEYS[:5]] = [*BASE, *HEADS[0][:2]]
    places = rows.assign(trials=100, value=rows["hits"] / 100)
    relation = syntax((0, "t", "obj", 45, 45))
    data = given(attention=attention, measures=attention, positions=places, syntax=relation)
    heads = encoder_roles(data)
    shown = ["confidence", "entropy", "offset", "share", "function", "content"]
    assert heads[shown].fillna("").to_numpy().tolist() == [
        [0.8, 1.5, -1, 0.95, "-1", 1], [0.9, 1, 1, 0.4, "", 0],
    ]  # fmt: skip
    table = all_measures(data).query("measure in ('confidence', 'position')")
    assert table[["value", "note"]].fillna("").to_numpy().tolist() == [
        [0.8, "over content words"], [0.9, ""], [0.95, "at -1, over content words"],
        [0.4, "at +1"],
    ]  # fmt: skip


def test_labels_arrows_and_the_margin_in_points():
    names = [None, "-1", "v→s, o→v", "rare", "+12, rare, v→s"]
    kinds = [[], ["positional"], ["syntactic"], ["rare"], ["positional", "rare", "syntactic"]]
    assert [classes(name) for name in names] == kinds
    assert arrow("amod", "to_governor") == "a→n" and arrow("case", "to_dependent") == "head→case"
    row = syntax((0, "t", "obj", 55, 50))
    assert not exceeds(row, RolesSettings()).item()
    assert exceeds(row, RolesSettings(margin=0.05)).item()


def test_measures_agree_in_ranks_of_all_heads_and_within_layers() -> None:
    columns = {"importance": [3, 1, 2, 4.0], "relevance": [0.3, 0.7, 0.6, 0.4]}
    more = {"confidence": [1, 1, 1, 1.0], "loss_change": [1, 2, 3], "entropy": [1, 2, 3, 4.0]}
    table = agreement(all_measures(given(measures=values(**columns, **more))))
    assert set(table["kind"]) == {"all", "enc_self"}
    rows = table[table["kind"] == "all"].set_index(["first", "second", "scope"]).sort_index()
    both = rows.loc["importance", "relevance"]
    # Ranks 3 1 2 4 and 1 4 3 2: squared differences 4 + 9 + 1 + 4. In layers 2 1, 1 2 against
    # 1 2, 2 1: opposite in both.
    assert both.loc["all heads", "spearman"] == pytest.approx(1 - 6 * 18 / (4 * 15))
    assert both.loc["within layers", "spearman"] == pytest.approx(-1)
    assert both["heads"].tolist() == [4, 4]
    assert both.loc["all heads", "low"] < both.loc["all heads", "spearman"]
    constant = rows.loc["importance", "confidence"][["spearman", "low", "high", "p"]]
    assert constant.isna().all(axis=None)
    assert rows.loc["importance", "loss_change"]["heads"].tolist() == [3, 3]
    assert "entropy" not in {*table["first"], *table["second"]}
    two = {"importance": [1, 2], "relevance": [1, 2]}
    assert agreement(all_measures(given(measures=values(**two)))).empty


def test_within_layers_is_the_mean_of_the_layers_correlations() -> None:
    heads = voita.ranked_heads().dropna(subset="confidence").assign(kind="enc_self")
    both = heads.set_index(["kind", "layer"])[["relevance", "confidence"]]
    rho, low, high, p = _compare(both, "within layers")
    own = [layer.corr("spearman").iloc[0, 1] for _, layer in both.groupby("layer")]
    assert rho == pytest.approx(np.mean(own), abs=0.005)  # there are ties
    assert low < rho < high and p < 0.01
