"""Tables and figures of roles; every expected number is worked out beside it."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from captions import tell_what_is_covered
from chapters import gather_results, make_alone, make_tables
from roles_files import (
    BASE,
    DOWN,
    MODEL,
    PAIR,
    SENTENCE,
    UP,
    RolesCollection,
    collection,
)
from scipy.stats import spearmanr
from script_runner import run_script

from headcount.analysis.claims.claims import ledger
from headcount.base.errors import UserError
from headcount.base.settings.importance import LrpSettings
from headcount.base.settings.roles import RolesSettings
from headcount.findings.measures import bleu_lost
from headcount.findings.published import voita
from headcount.findings.significance import bootstrap_correlation, mcnemar, wilson
from headcount.findings.voita_roles import (
    agreement,
    dependency_figures,
    dependency_scores,
)
from headcount.findings.voita_roles.attention_maps import (
    check_map,
    is_right_to_left,
    read_sentences,
)
from headcount.findings.voita_roles.labels import HEAD_KEYS, arrow, exceeds
from headcount.findings.voita_roles.measured import all_roles, describe_roles, gate_survival


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> RolesCollection:
    return collection(tmp_path_factory.mktemp("roles"))


SETTINGS = {"model": MODEL, "roles": RolesSettings(), "lrp": LrpSettings()}


@pytest.fixture(scope="module")
def tables(made):
    found = make_tables("voita_roles", made.listed, SETTINGS)
    return {name.removeprefix("voita_"): table for name, table in found.items()}


def of_base(table: pd.DataFrame) -> list[dict]:
    return table[table["run"] == "baseline"].to_dict("records")


def test_every_head_has_the_labels_that_its_numbers_make(tables):
    rows = {(row["layer"], row["head"]): row for row in of_base(tables["roles"].tidy)}
    # 90 of 100 is enough; 89 is not, and a position seen once is not the most frequent. obj: 55 is
    # 10 points above 45, 54 is 9. nsubj on the second treebank does not count.
    assert {key: row["function"] for key, row in rows.items()} == {
        (0, 0): "-1, o→v", (0, 1): "rare", (1, 0): "v→s", (1, 1): "",
    }  # fmt: skip
    assert (rows[0, 0]["offset"], rows[0, 0]["share"]) == (-1, 0.9)
    assert (rows[1, 1]["offset"], rows[1, 1]["share"]) == ("", "")


def test_heads_are_ranked_in_their_layer_by_relevance(tables):
    rows = of_base(tables["roles"].tidy)
    assert [(row["layer"], row["head"], row["rank"]) for row in rows] == [
        (0, 1, 1), (0, 0, 2), (1, 0, 1), (1, 1, 2),
    ]  # fmt: skip
    # Two gates runs have λ above 0: heads 1.1 and 2.1 survive both and one, the others none.
    assert [row["survival"] for row in rows] == [0, 1, 0.5, 0]
    shown = tables["roles"].shown.to_dict("records")
    assert (shown[1]["layer"], shown[1]["head"], shown[1]["position"]) == (0, 0, "-1 (90 %)")


def test_relevance_by_the_ratio_rule_counts_by_its_size(tmp_path):
    made = RolesCollection(tmp_path)
    made.attention(BASE, {"confidence": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]})
    made.positions(BASE, [])
    made.syntax(BASE, [])
    signed = {"relevance": [-0.7, 0.3, 0.1, -0.9, -1.0, 1.0]}
    bounds = {name: [0.0] * 6 for name in ("relevance_low", "relevance_high")}
    made.values("relevance", BASE, signed | bounds)
    found = gather_results("voita_roles", made.listed, SETTINGS)
    rows = all_roles(found)[["layer", "head", "rank", "relevance"]].to_numpy().tolist()
    assert rows == [[0, 0, 1, -0.7], [0, 1, 2, 0.3], [1, 1, 1, -0.9], [1, 0, 2, 0.1]]
    assert agreement.measures(found)["relevance"].tolist() == [0.7, 0.3, 0.1, 0.9, 1, 1]
    words = "Relevance: ratio rule, signed, ranked and compared by its size, up to 200"
    assert "Relevance: alpha-beta rule, up to" in describe_roles(found)[0]
    ratio = SETTINGS | {"lrp": LrpSettings(rule="ratio")}
    assert words in describe_roles(gather_results("voita_roles", made.listed, ratio))[0]


def test_table_1_has_the_best_head_of_each_relation(tables):
    rows = {(r["treebank"], r["relation"]): r for r in of_base(tables["table1"].tidy)}
    best = rows["t.first", "nsubj"]
    assert (best["layer"], best["head"], best["accuracy"], best["baseline"]) == (1, 0, 0.8, 0.4)
    assert best["margin"] == pytest.approx(0.4)
    # Of 100 trials 80 and 40: both are right in 20, the head alone in 60, the baseline in 20.
    # Two heads were tried.
    assert best["p"] == pytest.approx(2 * mcnemar(60, 20))
    assert (best["low"], best["high"]) == pytest.approx(wilson(80, 100))
    assert (rows["t.first", "obj"]["heads_above"], best["heads_above"]) == (1, 1)
    assert rows["t.second", "nsubj"]["accuracy"] == 0.99
    # 50 of its hits are the half's, which leaves 30 of 50.
    assert best["held_out"] == 0.6
    paper = tables["table1"].tidy.query("source == 'paper' and relation == 'obj'")
    assert paper["margin"].round(2).tolist() == [0.37, 0.32, 0.15, 0.38]
    shown = tables["table1"].shown.to_dict("records")
    assert shown[0]["relation"] == "dobj (obj)" and shown[0]["direction"] == "o→v"


def test_the_margin_is_of_points_or_of_the_baseline():
    row = {"hits": 55, "baseline_hits": 50, "trials": 100}
    assert not exceeds(row, RolesSettings())
    assert exceeds(row, RolesSettings(margin_kind="relative"))  # 50 × 1.1
    assert exceeds(row, RolesSettings(margin=0.05))
    assert arrow("amod", UP) == "a→n" and arrow("case", DOWN) == "head→case"


def test_measures_are_compared_with_and_without_layers(tables):
    rows = tables["agreement"].tidy
    rows = rows[(rows["run"] == "baseline") & (rows["kind"] == "enc_self")]
    found = {(r["first"], r["second"], r["scope"]): r for r in rows.to_dict("records")}
    pair = ("importance", "relevance")
    # Importance 3, 1, 2, 4 and relevance .3, .7, .6, .4: opposite orders but for the first two
    # places: ranks 3 1 2 4 and 1 4 3 2, squared differences 4 + 9 + 1 + 4.
    assert found[(*pair, "all heads")]["spearman"] == pytest.approx(1 - 6 * 18 / (4 * 15))
    # Ranks in layers of two heads: 2 1, 1 2 and 1 2, 2 1, so opposite in both layers.
    assert found[(*pair, "within layers")]["spearman"] == pytest.approx(-1)
    # Survival 1 0 .5 0 has ranks 2 1, 2 1: alike in one layer, opposite in the other.
    assert found["importance", "survival", "within layers"]["spearman"] == pytest.approx(0)
    assert found[(*pair, "all heads")]["heads"] == 4
    # The ratio rule's sign does not count: .5 .1 .2 .3 against importance 3 1 2 4.
    ratio = found["importance", "relevance_ratio", "all heads"]["spearman"]
    assert ratio == pytest.approx(1 - 6 * 2 / 60)
    survival = found["importance", "survival", "all heads"]["spearman"]
    # Survival 1 0 .5 0, mean ranks 4 1.5 3 1.5; importance 3 1 2 4.
    expected = np.corrcoef([4, 1.5, 3, 1.5], [3, 1, 2, 4])[0, 1]
    assert survival == pytest.approx(expected)
    # BLEU lost 1 4 -2 3, ranks 2 4 1 3, against importance's 3 1 2 4: differences 1 3 1 1.
    lost = found["importance", "bleu_lost", "all heads"]
    assert lost["spearman"] == pytest.approx(1 - 6 * 12 / 60) and lost["heads"] == 4


def test_within_layers_no_layer_counts_for_its_spread():
    """In layers of as many heads without ties it is the mean of their own correlations.

    As in the paper's figures 1a and 1b, of which claim VO-02 prints both.
    """
    heads = voita.ranked_heads().dropna(subset="confidence").assign(kind="enc_self")
    rho, low, high, p = agreement._compared(heads, "relevance", "confidence", agreement.WITHIN)
    layers = heads.groupby("layer")
    own = [spearmanr(each["relevance"], each["confidence"]).statistic for _, each in layers]
    assert rho == pytest.approx(sum(own) / 6, abs=0.005)  # there are ties
    assert low < rho < high and p < 0.01
    whole, by_layer = ledger().claims["VO-02"].printed.values()
    assert whole == [round(rho, 2)] and by_layer == [round(each, 2) for each in own]


def test_captions_say_what_intervals_cover(tables):
    assert tell_what_is_covered(tables) == ["agreement", "roles", "table1"]
    for name, what in (("agreement", "heads"), ("roles", "sentences"), ("table1", "trials")):
        assert f"Intervals and p over {what} are of one trained model" in tables[name].text
    assert "BLEU lost: on the first test set, so more is worse" in tables["agreement"].text


def test_the_caption_says_on_how_many_sentences_measures_stand(tables, tmp_path):
    ablation, importance = tmp_path / "a.json", tmp_path / "i.json"
    ablation.write_text(json.dumps({"sentences": {"dev": 9, "web": 60, "news": 7}}))
    importance.write_text(json.dumps({"sentences": 1000, "data": "train"}))
    found = agreement.describe_sizes([ablation, ablation], [importance])
    assert found == "Sentences: BLEU lost: 60 of web; importance: 1000 of train."
    assert agreement.describe_sizes([], [importance]) == "Sentences: importance: 1000 of train."
    assert agreement.describe_sizes([], []) == ""
    assert "Sentences: BLEU lost: 60 of test; importance: 12 of dev." in tables["agreement"].text


def test_more_measures_are_compared_where_they_were_measured(tmp_path):
    """Shapley 4 3 2 1 of the encoder's heads, importance 3 1 2 4: Σd² is 1 + 4 + 0 + 9."""
    made = collection(tmp_path)
    facts = {
        "integrated_gradients": {"points": 8, "sum": 74.77, "loss_taken_off": 74.37},
        "shapley": {"orders": 6, "sentences": 64, "sum": 5.0, "loss_taken_off": 5.0},
    }
    made.values("more_measures", BASE, {"shapley": [4.0, 3, 2, 1, 5, 6], "shapley_error": [1] * 6})
    made.listed["measures"].pop()  # it lies in another folder
    (path,) = made.listed["more_measures"]
    path.with_suffix(".json").write_text(json.dumps(facts))
    made.listed["more_measures_facts"] = [path.with_suffix(".json")]
    table = make_tables("voita_roles", made.listed, SETTINGS)["voita_agreement"]
    rows = table.tidy.query("kind == 'enc_self' and scope == 'all heads' and run == 'baseline'")
    found = rows.set_index(["first", "second"])["spearman"]
    assert found["importance", "shapley"] == pytest.approx(1 - 6 * 14 / 60)
    assert "shapley_error" not in {*table.tidy["first"], *table.tidy["second"]}
    # 0.40 of 74.37 is 0.54 %.
    assert "integrated gradients to within 0.5 % of it, by 8 points" in table.text
    assert "Shapley values exactly, over 6 orders on 64 sentences." in table.text
    assert "Shapley value, loss added by its mean output and BLEU lost come of" in table.text
    whole = make_tables("voita_roles", collection(tmp_path / "less").listed, SETTINGS)
    less = whole["voita_agreement"].text
    assert "Survival, loss change and BLEU lost come" in less and "Shapley" not in less


def test_subsets_are_compared_where_there_are_any(tmp_path):
    """Survival 1 0 0.5 0, a subset keeps 1 0 0 1: ranks 4 1.5 3 1.5 and 3.5 1.5 1.5 3.5."""
    made = collection(tmp_path)
    made.kept((PAIR, "subset-all-k3", 1), [1, 0, 0, 1, 1, 0])
    table = make_tables("voita_roles", made.listed, SETTINGS)["voita_agreement"]
    rows = table.tidy.query("kind == 'enc_self' and scope == 'all heads' and run == 'baseline'")
    found = rows.set_index(["first", "second"])["spearman"]
    # Deviations 1.5 -1 0.5 -1 and 1 -1 -1 1: 1 over the root of 4.5 times 4.
    assert found["survival", "subset_survival"] == pytest.approx(1 / 18**0.5)
    assert "Survival under subset pruning: in how many of the runs" in table.text
    less = make_tables("voita_roles", collection(tmp_path / "less").listed, SETTINGS)
    assert "subset" not in less["voita_agreement"].text


def test_survival_counts_only_runs_with_a_penalty_and_the_head_in_scope(made):
    runs = made.listed["pruned_runs"]
    found = gate_survival(made.listed["kept"], runs).set_index(["kind", "layer", "head"])
    # The decoder's heads are in the scope of one run alone.
    assert found["survival"].to_dict() == {
        ("enc_self", 0, 0): 1, ("enc_self", 0, 1): 0, ("enc_self", 1, 0): 0.5,
        ("enc_self", 1, 1): 0, ("dec_self", 0, 0): 1, ("dec_enc", 0, 0): 0,
    }  # fmt: skip
    assert set(found["run"]) == {"baseline"}
    assert gate_survival([], []).empty


def test_survival_of_runs_from_random_weights_is_of_no_model(tmp_path):
    made = RolesCollection(tmp_path)
    made.kept((PAIR, "gates-all-l0.1-from-none", 1), [1, 0, 1, 0, 1, 0])
    assert gate_survival(made.listed["kept"], made.listed["pruned_runs"]).empty


def test_a_sentence_ends_where_its_line_does_whatever_its_subwords(tmp_path):
    path, sentence = tmp_path / "sentences.jsonl", SENTENCE | {"source": ["a\u2028\x85b", "</s>"]}
    path.write_text(f"{json.dumps(sentence, ensure_ascii=False)}\n" * 2)
    assert read_sentences(path) == [sentence, sentence]


def test_bleu_lost_is_of_the_first_test_set_and_of_single_heads(tmp_path):
    made = RolesCollection(tmp_path)
    rows = [
        "dev,single,enc_self,0,0,-9,-9,-9", "dev,single,dec_enc,0,0,-9,-9,-9",
        "web,none,,,,0,0,0", "web,single,enc_self,0,0,-0.25,-1.5,1",
        "web,single,dec_enc,0,0,0.5,-2,0.75", "web,all_but_one,enc_self,0,1,-7,-8,-6",
        "news,single,enc_self,0,0,-3,-4,-2",
    ]  # fmt: skip
    text = "\n".join(["test_set,order,kind,layer,head,delta,delta_low,delta_high", *rows])
    made.text("ablation", f"masking/{PAIR}/baseline/seed1/ablation.csv", text)
    found = bleu_lost(made.listed["ablation"])
    assert found[[*HEAD_KEYS, "value", "note"]].to_numpy().tolist() == [
        [PAIR, "baseline", 1, "enc_self", 0, 0, 0.25, "95\u00a0%: -1 to 1.5"],
        [PAIR, "baseline", 1, "dec_enc", 0, 0, -0.5, "95\u00a0%: -0.75 to 2"],
    ]
    assert bleu_lost([]).empty


@pytest.mark.slow
def test_f27_without_trees_the_tables_say_so(tmp_path):
    made = collection(tmp_path)
    for path in (*made.listed["syntax"], *made.listed["pruned_syntax"]):
        path.write_text(path.read_text().splitlines()[0] + "\n")
    made.listed["trees"] = []
    table = make_tables("voita_roles", made.listed, SETTINGS)["voita_table1"]
    assert set(table.tidy["source"]) == {"paper"}
    assert dependency_scores.NO_TREES in table.text
    shown = table.shown
    ours = shown[shown["source"] == "ours"]
    names = ["run", "trees", "relation", "best head", "baseline"]
    assert ours[names].to_numpy().tolist() == [
        [run, "none", "–", "not available", "–"] for run in ("baseline", "random-1")
    ]
    assert len(shown) == len(table.tidy) + 2
    scores = dependency_figures.score_points(table.tidy)
    assert set(scores["source"]) == {"paper"}
    assert len(dependency_figures.draw_scores(scores, ()).axes) == 1
    positions = dependency_figures.dependent_positions([], ["nsubj", "obj"])
    assert set(positions["source"]) == {"paper"}
    assert len(dependency_figures.draw_positions(positions, ["nsubj", "obj"]).axes) == 2


@pytest.mark.slow
def test_the_script_writes_every_table_and_figure(made, tmp_path):
    assert run_script("findings", [*made.flags(), "--out", tmp_path]) == 0
    for name in ("table1", "roles", "agreement"):
        found = {path.suffix for path in tmp_path.glob(f"tables/voita_{name}.*")}
        assert found == {".csv", ".md", ".tex", ".json"}
    for name in ("fig1", "fig2", "fig3", "fig4", "fig5", "fig8"):
        found = {path.suffix for path in tmp_path.glob(f"figures/voita_{name}.*")}
        assert found == {".csv", ".pdf", ".svg", ".png", ".json"}
    about = json.loads((tmp_path / "tables" / "voita_table1.json").read_text())
    assert about["provenance"]["settings"]["lrp"]["rule"] == "alpha_beta"


@pytest.mark.slow
def test_every_exhibit_is_made_of_what_it_says_that_it_needs(made):
    assert len(make_alone("voita_roles", made.listed, SETTINGS)) == 9


def test_wilsons_interval_is_the_formulas():
    # 8 of 10: (8 + z²/2) / (10 + z²) ± z / (10 + z²) · √(8 · 2 / 10 + z²/4), z² = 3.8415.
    middle, reach = 9.9207 / 13.8415, 1.95996 / 13.8415 * math.sqrt(1.6 + 0.96036)
    assert wilson(8, 10) == pytest.approx((middle - reach, middle + reach), abs=1e-4)
    assert wilson(0, 5)[0] == 0 and wilson(5, 5)[1] == 1


def test_mcnemar_is_the_tail_of_fair_coins():
    assert mcnemar(0, 0) == 1
    assert mcnemar(1, 3) == pytest.approx(2 * (1 + 4) / 16)
    assert mcnemar(3, 1) == mcnemar(1, 3)
    assert mcnemar(4, 4) == 1
    assert mcnemar(0, 12) == pytest.approx(2 / 4096)
    assert 0 <= mcnemar(2, 3000) < 1e-300


def test_bootstrap_of_equal_orders_is_certain_and_of_one_value_unknown():
    values = np.array([1.0, 5.0, 2.0, 9.0, 4.0, 4.0])
    assert bootstrap_correlation(values, 3 * values, ranks=True) == (
        pytest.approx(1),
        pytest.approx(1),
    )
    assert all(math.isnan(bound) for bound in bootstrap_correlation(values, np.ones(6), ranks=True))
    low, high = bootstrap_correlation(values, np.array([2.0, 4.0, 9.0, 6.0, 1.0, 5.0]), ranks=True)
    assert -1 <= low < high <= 1


def test_scripts_from_right_to_left_are_known():
    assert is_right_to_left(["ذهب", "الولد", "</s>"]) and is_right_to_left(["שלום"])
    assert not is_right_to_left(["a", "שלום", "bcdefg"]) and not is_right_to_left(["1", "."])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"weights": [[1.0]]}, r"2 queries × 1 keys, found \[1, 1\]"),
        ({"weights": [["x"], [1]]}, "found a fault"),
        ({"queries": [], "weights": []}, "0 queries"),
    ],
)
def test_maps_of_another_shape_are_refused(changes, words):
    with pytest.raises(UserError, match=words):
        check_map({"queries": ["a", "b"], "keys": ["c"], "weights": [[1.0], [0.5]]} | changes)
