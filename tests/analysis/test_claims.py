"""Numbers of the claims on frames of a few rows, and the table of claims from files.

A case has the claim, its sources as `evidence` in claims.yaml gives them to the metric, and the
number by part, as worked out beside it.
"""

import csv
import json
from itertools import product
from math import comb, nan
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from headcount.analysis.claims import table as module
from headcount.analysis.claims.claims import MODEL, Evidence, ledger, paper_value, printed_line
from headcount.analysis.claims.table import (
    COLUMNS,
    FAILS,
    HOLDS,
    UNDECIDED,
    claims_page,
    claims_table,
    decide,
    measure,
    metric_of,
    verdict_counts,
)
from headcount.analysis.inputs import files_in
from headcount.base.errors import UserError
from headcount.base.settings.experiment import experiment_names
from tests.golden.compare import read_copy
from tests.golden.frozen import files as frozen_files

ROOT = Path(__file__).parents[2]
KEYS = {"experiment": "e", "pair": "a.x-y", "run": "baseline", "seed": 1, "test_set": "t"}
RUNS = ["baseline", "random-6", "impt-6", "random-12", "impt-12"]


def frame(**columns: object) -> pd.DataFrame:
    """Rows of these columns and of `KEYS`; a single value stands in all rows."""
    lengths = [len(cells) for cells in columns.values() if isinstance(cells, list)]
    return pd.DataFrame(KEYS | columns, index=range(max(lengths, default=1)))


def around(values: list[float], error: float = 0.1) -> dict[str, list[float]]:
    """Values with an interval on both sides."""
    ends = {"low": -error, "high": error}
    return {"value": values} | {name: [v + add for v in values] for name, add in ends.items()}


def by_run(rows: dict[str, pd.DataFrame]) -> pd.DataFrame:
    return pd.concat([part.assign(run=run) for run, part in rows.items()], ignore_index=True)


def heads(*columns: str, **more: list) -> pd.DataFrame:
    """Encoder heads of the baseline; two layers of two."""
    places = {"layer": [0, 0, 1, 1], "head": [0, 1, 0, 1], "kind": "enc_self"}
    return frame(**places, **dict.fromkeys(columns, 0.0), **more)


class Given:
    """Sources as evidence; training runs of 48 heads stand beside them."""

    def __init__(self, sources: dict[str, pd.DataFrame]):
        masked, methods = [0, 6, 6, 12, 12], ["baseline", *["random", "importance"] * 2]
        runs = frame(run=RUNS, method=methods, masked=masked)
        self.sources = {"runs": runs, "sizes": frame(run=RUNS, heads=48)} | sources

    def frame(self, name: str, structure: bool = False) -> pd.DataFrame:
        return self.sources.get(name, pd.DataFrame())


def curve(*changes: float) -> pd.DataFrame:
    """BLEU changes with no, half and all heads masked, of BLEU 20."""
    return frame(heads_masked=[0, 4, 8], **around(list(changes), 0.0))


def orders(up: float, down: float) -> pd.DataFrame:
    ends = {"ascending": curve(0, up, -1), "descending": curve(0, down, -1)}
    return pd.concat([part.assign(order=order) for order, part in ends.items()])


GATES = {"scope": "all", "score": 20.0, "polarised": [0.95, 0.8, 1.0], "lambda": [0.1, 0.2, 0.3]}
GATES |= {"run": ["g1", "g2", "g3"], "gone": [0.25, 0.5, 1.0], "heads": 48, "scope_left": [9, 6, 0]}
ROLES = heads(value=[0.2, 0.1, 0.3, 0.3], low=[0.19, 0.09, 0.29, 0.2], high=[0.21, 0.11, 0.31, 0.4],
              confidence=[0.1, 0.9, 0.8, 0.4], rare_two_rarest=[0.6, 0.3, 0.1, 0.1],
              survival=[1.0, 0.0, 1.0, 0.5], known=[True, False, True, False],
              positional=[False, True, False, True])  # fmt: skip
IMPORTANCE = by_run({"baseline": heads(importance=[1.0, 2.0, 3.0, 6.0]),
                     "random-6": heads(importance=[1.0, 2.0, 2.0, 3.0]),
                     "impt-6": heads(importance=[1.0, 1.0, 1.0, 1.0])})  # fmt: skip
SCORES = frame(run=["baseline", *["random-6"] * 3, *["impt-6"] * 3],
               statistic=["bleu", *["delta", "low_bootstrap", "high_bootstrap"] * 2],
               value=[30, 0.5, 0.2, 0.8, -1, -2, 0])  # fmt: skip
GROUPS = by_run({run: frame(group=[1, 2], **around(changes)) for run, changes in (
    ("baseline", [-9.0, -1.0]), ("random-6", [-4.0, -2.0]), ("impt-6", [-3.0, -3.0]))})  # fmt: skip
ORDERS = by_run({"baseline": orders(-2, -6), "random-6": orders(-2, -5),
                 "random-12": orders(-2, -4), "impt-6": orders(-2, -4),
                 "impt-12": orders(-2, -2)})  # fmt: skip
ASCENDING = by_run({"baseline": curve(0, -4, -8), "random-6": curve(0, 0, -8),
                    "impt-6": curve(0, -2, -6)})  # fmt: skip
EFFECTS = frame(layer=[0, 0, 1, 1], kind=["enc_self", "dec_enc"] * 2, head=0,
                value=[0.2, 0.9, 1.5, 6.0], low=[0.0, 0.5, 1.1, 5.5],
                high=[0.5, 1.4, 2.0, 7.0])  # fmt: skip
TRAINING = frame(run="baseline", update=[10, 20, 100], score=[10, 20, 30], end_mass=[0.2, 0.4, 0.7],
                 r_squared=[0.9, 0.5, 0.4], spearman_raw_with_last=[0.6, 0.8, 1.0],
                 **around([50.0, 88.0, 99.0], 2.0))  # fmt: skip
FUNCTIONS = frame(run=["b"] * 3 + ["g"] * 3, scope=[None] * 3 + ["enc_self"] * 3,
                  function=["positional", "syntactic", "positional and rare"] * 2,
                  heads=[3, 2, 1, 0, 3, 0], heads_left=[9] * 3 + [3] * 3)  # fmt: skip
KINDS = frame(run=[f"g{n}" for n in range(3) for _ in range(3)], heads=16,
              kind=["enc_self", "dec_self", "dec_enc"] * 3, heads_left=[4, 8, 12] * 3)  # fmt: skip
LAYERS = frame(run="g1", kind=["dec_enc"] * 2 + ["dec_self"] * 2, layers=["0", "1", "0", "1–2"],
               heads_left=[1, 3, 2, 2])  # fmt: skip
RELATIONS = frame(relation=["nsubj", "nsubj", "obj", "obj"], direction=["to", "from"] * 2,
                  treebank="t", held_out=[0.6, 0.5, 0.7, 0.6], baseline=0.4,
                  trials=1000)  # fmt: skip
PAIRS = ["importance", "relevance", "confidence", "survival", "bleu_lost"]
AGREEMENT = frame(first=[a for a, b in product(PAIRS, PAIRS) if a < b],
                  second=[b for a, b in product(PAIRS, PAIRS) if a < b],
                  **around([0.5] * comb(5, 2)))  # fmt: skip
HISTORY = frame(run=["g1", "g1", "g2", "g2", "g3", "g3"], step=[1, 2] * 3, kind="enc_self", layer=0,
                head=0, p_open=[0.5, 0.504, 0.5, 0.9, 0.0, 0.0])  # fmt: skip
SPEED = frame(phase="decode", batch_size=[1, 64, 64], percent=[50, 50, 0], heads_left=[24, 24, 48],
              parameters=[700, 700, 1000], value=[1.1, 1.32, 1.0], low=[1.0, 1.2, 1.0],
              high=[1.2, 1.4, 1.0])  # fmt: skip
CORPORA = pd.concat([part.assign(pair=f"{corpus}.en-ru") for corpus, part in (
    ("opensubtitles", RELATIONS),
    ("wmt", RELATIONS.assign(held_out=[0.5, 0.3, 0.1, 0.1])))])  # fmt: skip
PLACES = pd.concat([part.assign(pair=f"{corpus}.en-ru") for corpus, part in (
    ("wmt", KINDS), ("opensubtitles", KINDS.assign(heads_left=[4, 6, 12] * 3)))])  # fmt: skip
ONE = around([0.7])

CASES = {
    "HM-01": ({"baseline_groups": GROUPS[:2]}, {"difference": 8, "least important": -1}),
    # Of four groups the lower two lose 0.5 and 2.
    "HM-02": ({"baseline_groups": frame(less_important=[False, False, True, True],
                                        **around([-9.0, -5.0, -2.0, -0.5]))}, {"": 0.5}),
    # Half of the weight lies on the middle of three points.
    "HM-03": ({"baseline_orders": orders(-2, -6)}, {"": 2}),
    "HM-04": ({"scores": SCORES}, {"a.x-y, random to baseline": 0.5}),
    "HM-05": ({"scores": SCORES}, {"a.x-y, impt to baseline": -1}),
    "HM-06": ({"scores": SCORES}, {"random to impt": 1.5}),
    # Variances 3.5, 0.5 and 0; means 3, 2 and 1.
    "HM-07": ({"importance": IMPORTANCE}, {"variance, random to baseline": 1 / 7}),
    "HM-08": ({"importance": IMPORTANCE}, {"mean, random to baseline": 2 / 3}),
    # Gini: mean difference of two heads over twice the mean, 26 / 16 / 2 / 3 · 2 and 12 / 16 / 2.
    "HM-09": ({"importance": IMPORTANCE}, {"gini, random to baseline": (6 / 32) / (16 / 48)}),
    "HM-10": ({"importance": IMPORTANCE}, {"largest, impt to baseline": 0.5,
                                           "top, impt to baseline": 0.25 / 0.5}),
    "HM-11": ({"relative_groups": GROUPS}, {"random to baseline": 5, "impt to baseline": 6}),
    # Standard deviations 0 and 1.
    "HM-12": ({"groups": GROUPS}, {"impt to random": -1}),
    "HM-13": ({"relative_orders": ORDERS}, {"random to baseline": -0.5, "random_25 to random": -0.5,
                                            "impt to baseline": -1, "impt_25 to impt": -1}),
    # Other seeds agree with 0.7 and 0.5.
    "HM-14": ({"training": TRAINING, "stability": frame(
        seed=[1, 1], other_seed=[2, 3], spearman=[0.7, 0.5])}, {"": 0.0}),
    "HM-15": ({"frequency": frame(run="random-6", kind="enc_self", layer=0, head=[0, 1], step=100,
                                  updates=100, trained=[90.0, 80.0])}, {"": 80 / 85}),
    "MI-01": ({"effects": EFFECTS}, {"": 0.5}),
    "MI-02": ({"ablation": frame(kind="enc_self", layer=0, head=[0, 1] * 2,
                                 test_set=["t", "t", "dev", "dev"],
                                 **around([1.0, 2.0, 0.8, 0.1]))}, {"": 0.8}),
    "MI-03": ({"transfer": frame(**ONE)}, {"": 0.7}),
    "MI-04": ({"layers": frame(**around([-0.2, -3.0, -2.0, -4.0]))}, {"": 0.25}),
    "MI-05": ({"cross_layers": frame(layer=[0, 1], **around([-9.0, -4.0]))}, {"": -4}),
    "MI-06": ({"by_importance": frame(percent=[0, 10, 30], **around([0.0, -1.0, -3.0]))}, {"": -2}),
    "MI-07": ({"one_per_layer": frame(**around([-30.0]))}, {"": -30}),
    "MI-08": ({"areas": frame(
        reference_run="all/importance", curve=["all/single", "all/importance_raw"],
        **around([-2.0, 3.0]))}, {"": -2}),
    "MI-09": ({"agreement_overall": frame(first="importance", second=["loss_change", "survival"],
                                          **around([0.9, 0.1]))}, {"": 0.9}),
    "MI-10": ({"importance_speed": frame(**ONE)}, {"": 0.7}),
    "MI-11": ({"training": TRAINING}, {"r_squared": -0.5, "end_mass": 0.5}),
    # Update 10 of 100 is within a tenth, but the first; 20 is not.
    "MI-12": ({"training": TRAINING.assign(update=[5, 10, 100])}, {"": 88}),
    "MI-13": ({"areas": frame(reference_run="dec_enc/importance", curve=["enc_self/importance"],
                              **around([4.0]))}, {"enc_self/importance": 4}),
    "MI-14": ({"speed": SPEED}, {"decode": 1.32,
                                 "decode at large batches over small ones": 1.2}),
    # Half of the heads are 300 of 1,000 parameters.
    "MI-15": ({"speed": SPEED}, {"": 0.6}),
    "MI-16": ({"areas": frame(reference_run="all/importance", curve="all/importance_signed",
                              **around([-1.0]))}, {"": -1}),
    "MI-17": ({"areas": frame(
        reference_run="all/importance", curve=["all/single", "all/importance_raw"],
        **around([-2.0, 3.0]))}, {"": 3}),
    # Tops of the layers: 0.2 of a mean of 0.15, and 1; of two layers the second makes a majority.
    "VO-01": ({"roles": ROLES}, {"": 1}),
    "VO-02": ({"agreement": frame(first="relevance", second="confidence", **ONE)}, {"": 0.7}),
    "VO-03": ({"roles": ROLES}, {"": 1}),
    "VO-04": ({"positions": frame(offset=[-1, -1, 1], share=[0.5, 0.95, 0.7]),
               "role_facts": frame(sentences=100)}, {"-1": 0.95, "+1": 0.7}),
    "VO-05": ({"positional": frame(doubt=[-0.7, -0.9], **around([0.7, 0.9], 0.02))}, {"": 0.7}),
    # Ranks of relevance 2, 1, 3.5, 3.5 of 4, of confidence 1, 4, 3, 2, less their layers' means.
    "VO-06": ({"roles": ROLES}, {"value": -0.125, "confidence": 0.25}),
    "VO-07": ({"relations": RELATIONS}, {"nsubj to": 0.2, "obj from": 0.2, "obj to": 0.3,
                                         "nsubj from": 0.1}),
    "VO-08": ({"relation_heads": frame(treebank="t", **around([0.0, 1.0], 0))}, {"": 1}),
    "VO-09": ({"relations": CORPORA}, {"nsubj to, opensubtitles to wmt": 0.1,
                                       "nsubj from, opensubtitles to wmt": 0.2}),
    "VO-10": ({"first_layer": ROLES[:2], "role_facts": frame(rare_sentences=100)}, {"": 0.6}),
    "VO-11": ({"roles": ROLES}, {"": 2}),
    "VO-12": ({"encoder_gates": frame(**GATES, **around([-1.0, -2.0, -8.0]))}, {"": -5}),
    # The gates of g2 still move.
    "VO-13": ({"gates": frame(**GATES), "history": HISTORY}, {"": 0.95}),
    # Ranks of survival 3.5, 1, 3.5, 2 of 4 less their layers' means.
    "VO-14": ({"roles": ROLES}, {"survival": (0.625 + 0.375) / 2}),
    # Three heads of nine; only the syntactic ones stay of three functions.
    "VO-15": ({"functions": FUNCTIONS}, {"": 1 / 3}),
    "VO-16": ({"functions": FUNCTIONS}, {"": 1 / 3}),
    "VO-17": ({"kinds_left": KINDS}, {"": 0.5}),
    # 8 lies halfway between 4 and 12, 6 a quarter of the way.
    "VO-18": ({"kinds_left": PLACES}, {"wmt to opensubtitles": 0.25}),
    # Mean layers 0.75 and 0.75; layers 1–2 stand at 1.5.
    "VO-19": ({"layers_left": LAYERS}, {"": 0.0}),
    "VO-20": ({"all_gates": frame(**GATES, **around([-1.0, -2.0, -8.0]))}, {"": -2}),
    "VO-21": ({"contenders": frame(contender="scratch", gates_run=["g1", "g2"], heads_left=[36, 24],
                                   run="s", **around([1.0, -0.4])), "sweeps": frame(**GATES)},
              {"": -0.4}),
    "VO-22": ({"gates": frame(**GATES), "random_gates": frame(
        run="r", scope="all", score=[18.0, 15.0], gone=[0.3, 0.8])}, {"": 2}),
    "VO-23": ({"sweeps": frame(**GATES)}, {"": -1}),
    "VO-24": ({"widths": frame(heads_per_layer=[8, 1], **around([nan, -0.9]))}, {"": -0.9}),
    "VO-25": ({"emptied": frame(heads_left=[3, 2], **around([-1.5, -0.5]))}, {"": -1.5}),
    "VO-26": ({"agreement": frame(first="relevance", second="survival", **ONE)}, {"": 0.7}),
    # Half of the heads have a function.
    "VB-01": ({"encoder_gates": frame(**GATES, **around([-1.0, -2.0, -8.0])), "roles": ROLES},
              {"": -2}),
    "VB-02": ({"effects": EFFECTS}, {"": 0.25}),
    # The two most relevant heads: one has a function, one is of the two most confident.
    "VB-03": ({"roles": ROLES}, {"known": 0.5, "confidence": 0.5}),
    "VB-04": ({"sweeps": frame(**GATES)}, {"": -1}),
    "KI-01": ({"shared_heads": frame(other_pair="a.y-x", **around([0.5, 1.0]))}, {"": 0.75}),
    "KI-02": ({"ranks_of_pairs": frame(other_pair="a.y-x", **around([0.5, 0.7]))}, {"": 0.6}),
    # 0.33 is 8 of the 25 hundredths between a quarter and a half.
    "KI-03": ({"pruned_for_all": frame(run="r", test_set="t", share=[0.25, 0.5],
                                       **around([-0.3, -0.9]))}, {"": -0.3 - 0.6 * 8 / 25}),
    "X-01": ({"agreement": AGREEMENT}, {"importance and relevance": 0.5}),
    "X-02": ({"contenders": frame(contender="ranked", gates_run=["g1", "g2"], heads_left=[26, 12],
                                  run="r", **around([-1.0, 0.4])), "sweeps": frame(**GATES)},
             {"50%": -1, "75%": 0.4}),
    "X-03": ({"relative_ascending": ASCENDING}, {"random to baseline": 2, "impt to baseline": 1.5}),
}  # fmt: skip


@pytest.mark.parametrize("name", ledger().claims)
def test_the_number_of_a_claim(name):
    sources, expected = CASES[name]
    rows = measure(ledger().claims[name], Given(sources)).reset_index(drop=True)
    parts = rows["part"] if "part" in rows else pd.Series("", rows.index)
    found = rows["value"].astype(float).groupby(parts.fillna("")).mean()
    assert {part: found[part] for part in expected} == pytest.approx(expected)
    ends = rows.reindex(columns=["low", "high"]).dropna()
    assert (ends["low"] <= rows.loc[ends.index, "value"] + 1e-9).all()
    assert (ends["high"] >= rows.loc[ends.index, "value"] - 1e-9).all()


@pytest.mark.parametrize("name", ledger().claims)
def test_a_claim_without_one_of_its_sources_has_no_number(name):
    sources = CASES[name][0]
    for source in metric_of(ledger().claims[name])[2]:
        assert measure(ledger().claims[name], Given(sources | {source: pd.DataFrame()})).empty


def test_errors_of_differences_shares_and_heads_drawn_at_random():
    rows = measure(ledger().claims["HM-06"], Given(CASES["HM-06"][0]))
    assert rows[["low", "high"]].values.tolist() == [[pytest.approx(0.2), pytest.approx(2.8)]]
    shares = measure(ledger().claims["MI-01"], Given(CASES["MI-01"][0]))
    assert shares[["low", "high"]].values.tolist() == [[0.5, 0.75]]
    spread = measure(ledger().claims["HM-12"], Given(CASES["HM-12"][0]))
    # Impt-N's groups are equal; of Random-N half of each error counts.
    assert spread["high"].tolist() == [pytest.approx(-0.9)]
    row = measure(ledger().claims["VO-17"], Given(CASES["VO-17"][0])).iloc[0]
    variance = 24 * 24 / (48 * 47) * (1 / 16 + 1 / 16)
    assert row["high"] - row["value"] == pytest.approx(1.959964 * np.sqrt(variance))
    assert measure(
        ledger().claims["VO-17"], Given({"kinds_left": KINDS[:6]})
    ).empty  # two models are too few


def test_every_two_pairs_of_a_model_count_alike(tmp_path):
    """Pairs a and b agree by 0.2, a and c by 0.5, b and c by 0.8. Pair d is untrained."""
    score = "a.d-x,baseline,1,t,bleu,3\na.a-x,baseline,1,t,bleu,30\n"
    write(tmp_path, "e/tables/bleu.csv", f"pair,run,seed,test_set,metric,score\n{score}")
    agree = ["a,baseline,b,0.2", "a,baseline,c,0.5", "b,baseline,c,0.8", "a,baseline,d,0"]
    rows = [f"a.{a}-x,{run},1,a.{b}-x,{v},{v},{v}\n"
            for a, run, b, v in (line.split(",") for line in [*agree, "a,impt-6,b,1"])]  # fmt: skip
    head = "pair,run,seed,other_pair,overlap,overlap_low,overlap_high\n"
    write(tmp_path, "e/tables/pair_ranks.csv", head + "".join(rows))
    claim = ledger().claims["KI-01"]
    evidence = Evidence(files_in("outputs", tmp_path))
    decision = decide(measure(claim, evidence), claim.test)
    assert decision["value"] == pytest.approx(0.5)
    assert (decision["seeds"], decision["scope"]) == (1, "one training")  # for three pairs


def test_a_run_counts_for_the_share_that_it_is_nearest_to():
    """Of 36 heads, 12.5 % are 4.5: a run with 5 heads stands for them, and one with 4 does not."""
    runs = ["baseline", "random-4", "random-5"]
    scores = SCORES[:4].assign(run=["baseline"] + ["random-5"] * 3)
    given = Given({"scores": pd.concat([scores, SCORES[1:4].assign(run="random-4", value=9.0)])})
    methods = ["baseline", "random", "random"]
    given.sources["runs"] = frame(run=runs, method=methods, masked=[0, 4, 5])
    given.sources["sizes"] = frame(run=runs, heads=36)
    assert measure(ledger().claims["HM-04"], given)["value"].tolist() == [0.5]


def test_seeds_that_are_not_measured_count():
    """The number of heads comes from the measured seed."""
    scores = pd.concat([SCORES.assign(seed=seed) for seed in (1, 2)])
    given = Given({"scores": scores})
    given.sources["runs"] = pd.concat([given.sources["runs"].assign(seed=s) for s in (1, 2)])
    assert sorted(measure(ledger().claims["HM-04"], given)["seed"].unique()) == [1, 2]


def test_every_claim_has_what_it_refers_to_and_values_of_its_paper():
    config = set(experiment_names(ROOT / "config"))
    known = ledger()
    for name, claim in known.claims.items():
        _, arguments, sources = metric_of(ledger().claims[name])
        assert set(sources) <= set(known.evidence), name
        assert {m for pair in claim.test.compare for m in pair} <= set(known.methods), name
        assert set(claim.needs.experiments) <= config and claim.needs.experiments, name
        assert claim.test.above is not None or claim.test.below is not None, name
        assert bool(printed_line(name)) == bool(claim.printed) and arguments is not None
        assert claims_page().count(f"**{name}**") == 1
    assert len(known.claims) == 68 and set(CASES) == set(known.claims)
    # HM-06: the mean of Zh–En over its test sets counts once beside the six other directions.
    assert printed_line("VO-22") == "BLEU gained, from and to: 0.2, 0.6"
    assert printed_line("VO-17") == "drawn, without numbers: figure 9"
    assert paper_value("VO-21") == pytest.approx(-0.46)
    assert np.isnan(paper_value("HM-01"))
    assert paper_value("VO-11") == pytest.approx((1.32 + 1.02 + 1.14) / 3, abs=0.01)


def test_verdicts_and_numbers_of_quickstart(tmp_path):
    contents = {f"results/{name}": content for name, content in read_copy("quickstart").items()}
    for name, content in (contents | dict(frozen_files("quickstart"))).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    quickstart = tmp_path / "results" / "quickstart"
    decided = claims_table(Evidence(files_in("outputs", quickstart)))
    assert decided.columns.tolist() == COLUMNS and len(decided) >= 24
    assert claims_table(Evidence([])).columns.tolist() == COLUMNS
    assert str(len(ledger().claims) - len(decided)) in verdict_counts(decided)
    verdicts = decided.set_index("claim")["verdict"]
    assert (verdicts != UNDECIDED).mean() >= 0.4
    assert (verdicts["HM-03"], verdicts["VO-21"]) == (HOLDS, FAILS)
    assert set(decided["scope"]) == {"one training"}
    within = decided.query("low <= limit <= high and low < high")
    assert set(within["verdict"]) == {UNDECIDED}
    rows = decided.set_index("claim")
    with (quickstart / "figures" / "michel_pruning.csv").open() as file:
        (fifth,) = (r for r in csv.DictReader(file) if r["scope"] == "all" and r["percent"] == "20"
                    and r["order"] == "importance" and r["source"] == "ours")  # fmt: skip
    numbers = [float(fifth[name]) for name in ("delta", "delta_low", "delta_high")]
    assert rows.loc["MI-06", ["value", "low", "high"]].tolist() == pytest.approx(numbers)
    assert "quickstart/figures/michel_pruning.csv" in rows.loc["MI-06", "files"].split()


def test_undecided_for_what():
    row = {"p": 0.01, "p_adjusted": 0.2, "opposed": False, "low": 1, "limit": 0, "high": 2}
    assert module._verdict(row | {"holds": True}) == (UNDECIDED, "after_correction")
    row |= {"p": 1.0, "p_adjusted": 1.0}
    assert module._verdict(row | {"opposed": True})[1] == "models_disagree"
    assert module._verdict(row | {"low": -1})[1] == "limit_in_interval"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_files_become_frames(tmp_path):
    table = "pair,run,seed,test_set,metric,score,source\na.x-y,baseline,1,t,bleu,{},ours\n"
    write(tmp_path, "e/tables/bleu.csv", table.format(30) + "a.x-y,baseline,,t,bleu,–,paper\n")
    write(tmp_path, "low/tables/bleu.csv", table.format(3))
    run = {"run": "random-6", "method": "random", "heads": 6}
    write(tmp_path, "e/train/a.x-y/random-6/seed2/run.json", json.dumps(run))
    slow = {"run": "random-6-rest3", "method": "random", "heads": 6, "cooldown_updates": 3}
    write(tmp_path, "e/train/a.x-y/random-6-rest3/seed2/run.json", json.dumps(slow))
    facts = {"sentences": 100, "rare_sentences": 90, "provenance": {}}
    write(tmp_path, "low/heads/a.x-y/baseline/seed1/roles.json", json.dumps(facts))
    evidence = Evidence(files_in("outputs", tmp_path))
    assert evidence.untrained == [("low", "a.x-y", 1)]
    assert evidence.frame("bleu")["score"].tolist() == [30]
    assert evidence.frame("role_facts").empty
    (of_low,) = evidence.frame("role_facts", structure=True).to_dict("records")
    assert [of_low[key] for key in (*MODEL, "sentences")] == ["low", "a.x-y", 1, "baseline", 100]
    (random,) = evidence.frame("runs").to_dict("records")  # the other has settings of its own
    assert (random["run"], random["method"], random["masked"]) == ("random-6", "random", 6)


def test_faulty_files_are_refused(tmp_path):
    first = write(
        tmp_path, "one/e/tables/bleu.csv", "pair,run,seed,metric\na.x-y,baseline,1,bleu\n"
    )
    with pytest.raises(UserError, match=r"bleu\.csv: .* score"):
        Evidence([first])
    again = write(tmp_path, "two/e/tables/bleu.csv", first.read_text())
    with pytest.raises(UserError, match=str(first)):
        Evidence([first, again])
