"""HeadMask's tables from hand-made files; every expected number is worked out beside it."""

import math

import pandas as pd
import pytest
from captions import tell_what_is_covered
from chapters import gather_results, make_alone, make_tables
from headmask_files import MODEL, HeadmaskFiles
from masked_runs import LINES, PAIR, SETTINGS, add_run, three_runs

from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.base.settings.importance import ImportanceSettings
from headcount.findings.headmask.importance import (
    read_importance,
    stability_summary,
    stability_table,
)
from headcount.findings.headmask.scores import (
    compare_scores,
    score_notes,
    score_summary,
    score_table,
)
from headcount.findings.scores import Scores
from headcount.findings.tables import write_tables

REVERSE = "multi.de-en"
NUMBERS = {f"headmask_table{n}" for n in range(1, 7)}
NAMES = NUMBERS | {"headmask_stability", "headmask_collapse"}
NAMES |= {"headmask_locked", "headmask_locked_heads", "headmask_foreseen"}


@pytest.fixture
def files(tmp_path):
    """Such files, for a test that changes them."""
    return three_runs(tmp_path)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """All tables of files that no test changes."""
    return tables(three_runs(tmp_path_factory.mktemp("runs")))


def tables(files, settings=SETTINGS):
    found = make_tables("headmask", files.lists(), settings)
    assert set(found) == NAMES
    return {name.removeprefix("headmask_"): table for name, table in found.items()}


def ours(table):
    return table.tidy[table.tidy["source"] == "ours"]


def test_table_1_counts_each_split(found):
    table = found["table1"]
    counted = ours(table)[["pair", "split", "role", "sentences"]].values.tolist()
    sizes = [("train", "train", 29000), ("dev", "dev", 1014), ("flickr", "test", 12)]
    assert counted == [[PAIR, *size] for size in sizes]
    first, second = table.shown.head(2).values.tolist()
    assert first == [PAIR, "29,000", "1,014", "flickr 12", "ours"]
    assert second == ["nist.zh-en", "1,340,000", "MT03", "MT04, MT05, MT06", "paper"]


def statistics(table, run):
    """{(statistic, seed): value} of one of our runs."""
    rows = ours(table)
    rows = rows[rows["run"] == run]
    keys = zip(rows["statistic"], rows["seed"], strict=True)
    return dict(zip(keys, rows["value"], strict=True))


def test_scores_differences_and_tests_over_seeds(found):
    table = found["table4"]
    random = statistics(table, "random-1")
    assert (random["bleu", 1], random["delta", 1], random["delta", 2]) == (31, 1, 2)
    assert (random["bleu_mean", ""], random["delta_mean", ""]) == (32.5, 1.5)
    # BLEU 31 and 34: each 1.5 from the mean, variance 4.5. Differences 1 and 2: sd √½.
    assert random["bleu_sd", ""] == pytest.approx(math.sqrt(4.5))
    assert random["delta_sd", ""] == pytest.approx(math.sqrt(0.5))
    # t = 1.5 / (√½ / √2) = 3 with one degree: p = 1 − 2/π · atan 3; reach 12.706 · ½.
    assert random["p_t", ""] == pytest.approx(1 - 2 / math.pi * math.atan(3))
    assert random["delta_low", ""] == pytest.approx(1.5 - 6.353, abs=1e-3)
    assert random["delta_high", ""] == pytest.approx(1.5 + 6.353, abs=1e-3)
    # random-1 translates as the baseline does; impt-2 turns every sentence round.
    tested = [random[f"{name}_bootstrap", 1] for name in ("low", "high", "p")]
    assert tested == [0, 0, 1]
    assert statistics(table, "impt-2")["p_bootstrap", 2] < 0.01
    baseline = {name for name, _ in statistics(table, "baseline")}
    assert baseline == {"bleu", "bleu_mean", "bleu_sd"}


def test_scores_as_people_read_them(found):
    shown = found["table4"].shown.set_index(["run", "source"])
    row = shown.loc[("random-1", "ours")]
    assert row["BLEU"] == "32.50 ± 2.12" and row["difference"] == "+1.50 ± 0.71"
    assert (row["p (bootstrap)"], row["p (t-test)"]) == ("1.0, 1.0", "0.20")
    assert row["95 % interval"] == "-4.85 to +7.85"
    assert shown.loc[("impt-2", "ours"), "difference"] == "-2.50 ± 2.12"  # −1 and −4
    paper = shown.loc[("impt-18", "paper")]
    assert paper["BLEU"].tolist() == ["32.47", "28.06", "16.10"]
    assert paper["difference"].tolist() == ["+0.49", "-0.01", "+0.36"]


def test_with_one_seed_the_interval_is_over_sentences(tmp_path):
    """Both translate alike, so that no resample tells them apart."""
    files = HeadmaskFiles(tmp_path)
    files.text(PAIR, 100, 10, {"flickr": LINES})
    masks = {20: [0.5, 0.5, 0, 0, 0, 0]}
    for run, found in (("baseline", {}), ("random-1", masks)):
        add_run(files, (PAIR, run, 1), 30.0, LINES, [1.0, 2, 3, 4, 5, 9], found)
    shown = tables(files)["table2"].shown.set_index(["run", "source"])
    assert "p (t-test)" not in shown
    row = shown.loc[("random-1", "ours")]
    assert (row["95 % interval"], row["p (bootstrap)"]) == ("+0.00 to +0.00", "1.0")
    assert shown.loc[("baseline", "ours"), "95 % interval"] == "–"


def test_scores_of_a_training_that_collapsed_are_warned_of(found):
    assert found["table4"].warnings == tuple(
        f"impt-2, seed {seed} of {PAIR} collapsed in training (table headmask_collapse): heads "
        "that it masked nearly always hurt the model that its scores are of."
        for seed in (1, 2)
    )
    assert not found["table3"].warnings  # into English, where no pair of ours is


def test_pairs_stand_in_the_table_of_their_direction(files):
    """The first pair is Table 2; into English is Table 3; the rest is Table 4."""
    files.text(REVERSE, 29000, 1014, {"flickr": LINES})
    add_run(files, (REVERSE, "baseline", 1), 40.0, LINES, [1.0] * 6)
    files.text("wmt.en-ro", 10, 2, {"NewsTest2016": LINES})
    add_run(files, ("wmt.en-ro", "baseline", 1), 20.0, LINES, [1.0] * 6, test="NewsTest2016")
    listed = files.lists()
    kinds = ("scores", "translations", "references")
    scores = compare_scores(Scores(*(listed[kind] for kind in kinds)))
    tidy = {number: score_table(number, scores) for number in (2, 3, 4)}
    pairs = [list(tidy[n].loc[tidy[n]["source"] == "ours", "pair"].unique()) for n in (2, 3, 4)]
    assert pairs == [[PAIR], [REVERSE], [PAIR, "wmt.en-ro"]]
    # The paper's score of the same languages and test set follows ours, before the others.
    order = score_summary(tidy[4])[["pair", "source"]].drop_duplicates().values.tolist()
    assert order[:3] == [[PAIR, "ours"], ["wmt.en-ro", "ours"], ["wmt16.en-ro", "paper"]]
    assert order[3:] == [["iwslt15.en-vi", "paper"], ["wmt17.en-tr", "paper"]]
    notes = score_notes(3, tidy[3], gather_results("headmask", listed, SETTINGS))
    assert f"Data: {REVERSE}; seed 1." in notes


def test_a_table_without_a_pair_of_ours_says_so(found):
    table = found["table3"]
    assert ours(table).empty and len(table.shown) == 9
    assert "This experiment has no such pair." in table.notes
    assert "all pairs into English" in table.caption


def test_inequality_of_heads(found):
    variance, mean = (ours(found[f"table{n}"]).set_index(["run", "seed"]) for n in (5, 6))
    # 1 2 3 4 5 9: mean 4; squares 9 4 1 0 1 25 = 40, over 6.
    assert mean.loc[("baseline", 1), "mean"] == 4
    assert variance.loc[("baseline", 1), "variance"] == pytest.approx(40 / 6)
    assert variance.loc[("baseline", 2), "max_over_mean"] == 2.25
    # Σ (2i − 7) x: −5 − 6 − 3 + 4 + 15 + 45 = 50, over 6 · 24.
    assert variance.loc[("baseline", 1), "gini"] == pytest.approx(50 / 144)
    # 2 2 2 2 2 8: mean 3, variance (5 + 25) / 6 = 5.
    random = variance.loc[("random-1", 1)]
    assert random["variance"] == pytest.approx(5)
    assert random["ratio_to_baseline"] == pytest.approx(5 / (40 / 6))
    assert random["cv"] == pytest.approx(math.sqrt(5) / 3)
    assert mean.loc[("random-1", 2), "ratio_to_baseline"] == 0.75
    impt = variance.loc[("impt-2", 1)]  # all heads are equal
    assert impt[["variance", "cv", "gini"]].tolist() == pytest.approx([0, 0, 0], abs=1e-12)
    assert list(found["table5"].tidy.columns[:4]) == ["pair", "run", "seed", "variance"]
    assert list(found["table6"].tidy.columns[:4]) == ["pair", "run", "seed", "mean"]


def test_the_papers_inequality_stands_beside_ours(found):
    shown = found["table5"].shown.set_index(["pair", "run"])
    row = shown.loc[("nist.zh-en", "random-18")]
    # √33.21 / 19.62 = 0.2937; 33.21 / 77.28 = 0.4297.
    assert (row["variance"], row["cv"], row["ratio to baseline"]) == ("33.21", "0.294", "0.430")
    assert (row["gini"], row["heads"], row["source"]) == ("–", "144", "paper")
    assert shown.loc[(PAIR, "baseline"), "variance"] == "6.67 ± 0.00"


def test_stability_between_halves_and_seeds(files):
    files.importance((PAIR, "baseline", 2), [2.0, 1, 3, 4, 5, 9])
    table = stability_table(read_importance(files.lists()["importance"]))
    rows = table[table["run"] == "baseline"]
    halves = rows[rows["comparison"] == "halves"]
    # Seed 1's second half is its first turned round; seed 2's halves are alike.
    assert halves["spearman"].tolist() == pytest.approx([-1, 1])
    (seeds,) = rows[rows["comparison"] == "seeds"].to_dict("records")
    assert (seeds["seed"], seeds["other_seed"], seeds["heads"]) == (1, 2, 6)
    # Two neighbours swapped among six: 1 − 6 · 2 / (6 · 35).
    assert seeds["spearman"] == pytest.approx(1 - 12 / 210)
    shown = stability_summary(table).set_index("run")
    assert shown.loc["baseline", "between halves of the data"] == "0.00 (-1.00 to 1.00)"
    assert shown.loc["impt-2", "between pairs of seeds"] == "–"  # all heads are equal


def test_captions_say_how_and_on_what_bleu_was_measured(found):
    assert "beam 3, length penalty 0.6" in found["table2"].text
    assert "(7 sentences), by beam 3, length penalty 0.6" in found["collapse"].text


def test_the_baseline_alone(tmp_path):
    files = HeadmaskFiles(tmp_path)
    files.text(PAIR, 100, 10, {"flickr": LINES})
    add_run(files, (PAIR, "baseline", 1), 30.0, LINES, [1.0, 2, 3, 4, 5, 9])
    found = tables(files)
    assert ours(found["table2"])["statistic"].tolist() == ["bleu", "bleu_mean"]
    assert "p (t-test)" not in found["table2"].shown.columns
    assert "N =" not in found["table2"].text
    assert found["collapse"].tidy["collapsed"].tolist() == ["no"]
    assert not found["collapse"].warnings
    assert found["stability"].shown["between pairs of seeds"].tolist() == ["–"]


def test_without_a_baseline_there_are_no_differences(tmp_path):
    files = HeadmaskFiles(tmp_path)
    files.text(PAIR, 100, 10, {"flickr": LINES})
    masks = {20: [0.5, 0.5, 0, 0, 0, 0]}
    add_run(files, (PAIR, "random-1", 1), 30.0, LINES, [1.0, 2, 3, 4, 5, 9], masks)
    found = tables(files)
    assert set(ours(found["table2"])["statistic"]) == {"bleu", "bleu_mean"}
    assert "No run is named baseline." in found["table2"].text
    assert ours(found["table5"])["ratio_to_baseline"].tolist() == [""]


def test_runs_with_a_dropout_of_their_own_are_named(files, found):
    told = "Of another dropout than the baseline, to which a part of the difference is due"
    assert told not in found["table4"].text
    add_run(files, (PAIR, "random-1-d0.3", 1), 30, LINES, [1.0] * 6)
    rows = ours(found["table4"]).replace({"run": {"random-1": "random-1-d0.3"}})
    results = gather_results("headmask", files.lists(), SETTINGS)
    assert f"{told}: random-1-d0.3." in score_notes(4, rows, results)


def test_captions_name_model_data_seeds_and_n(found):
    for name in NAMES - {"headmask_table1", "headmask_table3"}:
        caption = found[name.removeprefix("headmask_")].text
        assert "2 encoder and 1 decoder layers, d_model 8, d_ff 16, 6 heads, post-norm" in caption
        assert f"Data: {PAIR}; seeds 1, 2; N = 1, 2 of 6 heads." in caption
    assert "its two scores differ by 0.32" in found["table2"].text
    assert "paired bootstrap (sacreBLEU's, which is nearly one-sided)" in found["table2"].text
    assert "sig bleu" in found["table2"].text and "bs:1000" in found["table2"].text
    assert "nats per sentence" in found["table5"].text


def test_captions_say_what_intervals_cover(found):
    assert tell_what_is_covered(found) == ["collapse", "table2", "table3", "table4"]


def test_the_papers_bleu_is_called_another_metric(found):
    told = "unknown, for the paper tells neither its tokenisation nor whether case counts"
    assert f"Our BLEU is sacreBLEU's, the paper's: {told}." in found["table2"].text
    printed = found["table2"].tidy.query("source == 'paper'")
    assert set(printed["signature"]) == {told}


def test_importance_of_another_kind_has_its_own_words(tmp_path):
    files = HeadmaskFiles(tmp_path)
    files.text(PAIR, 100, 10, {"flickr": LINES})
    add_run(files, (PAIR, "baseline", 1), 30.0, LINES, [1.0, 2, 3, 4, 5, 9])
    settings = ImportanceSettings(reduction="mean", abs="batch", data="dev", normalise="layer_l2")
    caption = tables(files, {"model": MODEL, "importance": settings})["table6"].text
    assert "share of its layer's L2 norm" in caption and "size for each batch" in caption
    assert "sentence pairs of dev" in caption


@pytest.mark.slow
def test_every_exhibit_is_made_of_what_it_says_that_it_needs(files):
    others = {"headmask_regularisation", "headmask_variants"}  # made in tests of their own
    assert make_alone("headmask", files.lists(), SETTINGS, others) > NAMES


@pytest.mark.slow
def test_tables_are_written_and_escaped(files, tmp_path):
    out = tmp_path / "tables"
    found = make_tables("headmask", files.lists(), SETTINGS)
    write_tables(found, out, {"command": []})
    for name in NAMES:
        assert {path.suffix for path in out.glob(f"{name}.*")} == {".csv", ".md", ".tex", ".json"}
    latex = (out / "headmask_table4.tex").read_text()
    assert "p (bootstrap) & 95 \\% interval" in latex and "of several seeds the t interval" in latex
    assert "d\\_model 8" in latex
    markdown = (out / "headmask_table4.md").read_text()
    assert "&lt; 0.001, &lt; 0.001" in markdown  # impt-2, either seed
    tidy = pd.read_csv(out / "headmask_table5.csv")
    assert tidy.loc[tidy["source"] == "paper", "seed"].isna().all()
    assert tidy.loc[tidy["run"] == "random-1", "seed"].tolist() == [1, 2]
    about = read_json(out / "headmask_collapse.json")
    assert about["columns"][-1] == "collapsed" and about["rows"][-1][-1] == "yes"


def test_files_that_lack_something(files):
    importance = files.of_runs("heads", "importance.csv")[0]
    importance.write_text("kind,layer,head,statistic,value\n")
    told = "seed1/importance.csv: expected rows whose statistic is importance, found none"
    with pytest.raises(UserError, match=told):
        read_importance(files.lists()["importance"])
    importance.write_text("kind,layer,head,value\n")
    with pytest.raises(UserError, match="importance.csv: expected the columns.*named statistic"):
        read_importance(files.lists()["importance"])


def test_halves_of_other_heads(files):
    path = files.of_runs("heads", "importance.csv")[0]
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "enc_self,1,0,importance_second" not in line))
    words = "the halves of multi.en-de, baseline, seed 1: expected the same heads.*found 6 and 5"
    with pytest.raises(UserError, match=words):
        stability_table(read_importance(files.lists()["importance"]))
    path.write_text("".join(line for line in lines if "half" not in line))
    with pytest.raises(UserError, match="found 0 and 0"):
        stability_table(read_importance(files.lists()["importance"]))


def test_a_translation_too_few(files):
    kinds = ("scores", "translations", "references")
    found = [files.lists()[kind] for kind in kinds]
    found[1][0].write_text("one line\n")
    with pytest.raises(UserError, match="expected one translation per reference line"):
        compare_scores(Scores(*found))
