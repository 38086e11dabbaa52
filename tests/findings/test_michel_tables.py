"""Tables of heads removed from trained models, by hand from hand-made files."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from captions import tell_what_is_covered
from chapters import chapter_of, gather_results, make_alone, make_tables
from michel_files import MODEL, one_model
from script_runner import run_script

from headcount.base.errors import UserError
from headcount.base.settings.ablation import AblationSettings, RerankSettings
from headcount.findings.michel import removal
from headcount.findings.michel.training import profile_cells
from headcount.findings.published import michel
from headcount.findings.setting import MASKED_OR_GATED
from headcount.findings.significance import bootstrap_correlation

PLAIN = {"model": MODEL, "ablation": AblationSettings(), "importance": RerankSettings()}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return one_model(tmp_path_factory.mktemp("michel"))


@pytest.fixture(scope="module")
def tables(made):
    return make_tables("michel", made.listed, PLAIN)


def ours(table):
    return table.tidy[table.tidy["source"] == "ours"]


def test_single_heads_with_the_correction_of_their_test_set(tables):
    found = ours(tables["michel_ablation"])
    test = found[found["test_set"] == "test"]
    assert test[["kind", "layer", "head"]].to_numpy().tolist() == [
        ["enc_self", 0, 0], ["enc_self", 0, 1], ["enc_self", 1, 0],
        ["dec_self", 0, 0], ["dec_enc", 0, 0], ["dec_enc", 0, 1],
    ]  # fmt: skip
    # p 0.0005, 0.002, 1, 0.3, 0.009, 0.4: the smallest times 6, the next times 5, 4, 3, 2, 1.
    assert test["p_holm"].to_list() == pytest.approx([0.003, 0.01, 1, 0.9, 0.036, 0.9])
    assert test["significant"].to_list() == [1, 1, 0, 0, 1, 0]
    assert list(dict.fromkeys(found["test_set"])) == ["dev", "test", "other"]
    (row,) = (
        row
        for row in tables["michel_ablation"].shown.to_dict("records")
        if (row["test set"], row["kind"]) == ("test", "encoder")
    )
    assert (row["mean change"], row["worst"], row["best"]) == ("-2.33", "-8.00", "+1.00")
    # 0.01 is not below 0.01.
    assert (row["significant"], row["Holm"], row["heads"]) == ("2 (1 gains)", "1", "3")


def test_the_papers_single_heads_stand_beside(tables):
    printed = tables["michel_ablation"].shown.iloc[-1]
    assert (printed["source"], printed["heads"]) == ("paper", "96")
    assert printed["significant"] == "8 (4 gains)" and printed["worst"] == "-0.53"


def test_the_head_that_stays_has_its_change_on_dev(tables):
    found = ours(tables["michel_all_but_one"])
    columns = ["test_set", "kind", "layer", "head", "heads", "dev_delta", "delta", "significant"]
    assert found[columns].to_numpy().tolist() == [
        ["test", "enc_self", 0, 0, 2, -1.0, 1.0, 1],
        ["test", "dec_enc", 0, 0, 2, 1.0, -2.0, 1],
        ["other", "enc_self", 0, 0, 2, -1.0, 0.0, 0],
        ["other", "dec_enc", 0, 0, 2, 1.0, -2.0, 0],
    ]
    counted = [
        row["on test"]
        for row in tables["michel_all_but_one"].shown.to_dict("records")
        if row["kind"] == "all"
    ]
    # A significant gain is no loss. The paper: 9 of 18 have a significant loss.
    assert counted == [
        "1 without a significant loss, 1 without any",
        "2 without a significant loss, 1 without any",
        "9 without a significant loss, 4 without any",
    ]


def test_transfer_by_hand(tables):
    found = ours(tables["michel_transfer"]).set_index(["test_set", "other_test_set", "kind"])
    assert list(found.index.get_level_values(2)) == ["all"] * 3  # no kind has four heads
    # test: −8 1 0 −0.5 −4 2, mean −9.5/6; other: −4 1.5 1 −1.5 −5 1, mean −7/6.
    row = found.loc[("test", "other", "all")]
    one, two = [-8, 1, 0, -0.5, -4, 2], [-4, 1.5, 1, -1.5, -5, 1]
    covariance = sum(a * b for a, b in zip(one, two, strict=True)) - (-9.5) * (-7) / 6
    squares = (sum(a * a for a in one) - 9.5**2 / 6) * (sum(b * b for b in two) - 49 / 6)
    r = covariance / math.sqrt(squares)
    assert row["pearson"] == pytest.approx(r)
    assert (row["pearson_low"], row["pearson_high"]) == bootstrap_correlation(
        np.array(one), np.array(two), ranks=False
    )
    assert ("test", "dev") in {key[:2] for key in found.index}
    printed = tables["michel_transfer"].tidy.iloc[-1]
    assert (printed["pearson"], printed["source"]) == (0.56, "paper")


def row_of(table, **wanted):
    (found,) = (r for r in table.tidy.to_dict("records") if wanted.items() <= r.items())
    return found


def test_how_many_heads_can_go(tables):
    table = tables["michel_pruning"]
    found = row_of(table, scope="all", order="importance", source="ours")
    # A significant gain at 2 heads is no loss; at 3 heads p is 0.2; at 5 heads it is lost.
    assert (found["holds_at"], found["holds_percent"], found["falls_at"]) == (3, 50, 5)
    assert (found["holds_delta"], found["falls_delta"], found["falls_p"]) == (-0.5, -9, 0.001)
    # 95 % of 50 is 47.5: 49.5 at 50 %, 41 at 75 %.
    assert (found["keeps_percent"], found["heads"], found["step"]) == (50, 6, 25)
    kind = row_of(table, scope="enc_self", source="ours")
    assert (kind["holds_percent"], kind["falls_at"], kind["keeps_percent"]) == (100, "", 50)
    one = row_of(table, order="one_per_layer")
    assert (one["falls_at"], one["holds_at"], one["keeps_percent"]) == (2, "", "")
    paper = row_of(table, pair="wmt14.en-fr", order="importance", scope="all")
    assert paper["keeps_percent"] == 20  # 95 % of 36.05 is 34.25: 35.63, then 34.12
    shown = {
        (row["scope"], row["order"]): row
        for row in table.shown.to_dict("records")
        if row["source"] == "ours"
    }
    first = shown["all", "importance"]
    assert first["without a significant loss"] == "50 % (3)"
    # Intervals reach 1 to either side of −0.5 and −9.
    assert first["change there"] == "-0.50 (-1.50 to +0.50), p 0.20"
    assert (first["first loss at"], first["change at it"]) == (
        "75 % (5)", "-9.00 (-10.00 to -8.00), p 0.0010"
    )  # fmt: skip
    assert first["test set"] == "test, 7 sentences"
    assert (shown["all", "one per layer"]["change there"], paper["sentences"]) == ("–", "")
    # Draws hold to 0 and 25 %, and fall at 25 and 50 %.
    assert shown["all", "random"]["without a significant loss"] == "12 %"
    assert shown["all", "random"]["first loss at"] == "38 %"
    assert shown["all", "random"]["change at it"] == "–"


def test_heads_in_the_order_in_which_they_go(tables):
    """3 4, 2, 5 and 8 6 by their layers' norms 5, 2, 5 and 10: 0.6 0.8, 1, 1 and 0.8 0.6.

    Of equal ones the last goes first. Steps have 2, 3, 5 and 6 heads, a quarter each; the loss at 5
    is the first significant one.
    """
    table = tables["michel_removal"]
    columns = ["rank", "address", "importance_compared", "goes_at", "goes_percent", "before_loss"]
    assert table.tidy[columns].to_numpy().tolist() == [
        [1, "dec_enc.0.1", 0.6, 2, 25, "yes"],
        [2, "enc_self.0.0", 0.6, 2, 25, "yes"],
        [3, "dec_enc.0.0", 0.8, 3, 50, "yes"],
        [4, "enc_self.0.1", 0.8, 5, 75, "no"],
        [5, "dec_self.0.0", 1, 5, 75, "no"],
        [6, "enc_self.1.0", 1, 6, 100, "no"],
    ]
    assert set(table.tidy["test_set"]) == {"test"}  # of three, that of the pruning
    second = table.shown.to_dict("records")[1]
    assert (second["importance compared"], second["as measured"]) == ("0.600", "3.000")
    assert (second["BLEU change"], second["95 % interval"]) == ("-8.00", "-9.00 to -7.00")
    assert (second["loss change"], second["loss rise"]) == ("0.500", "-0.250")
    assert second["goes at"] == "25 % (2)" and "Of each model the first" not in table.text


def test_of_many_heads_the_first_are_shown(made, monkeypatch):
    monkeypatch.setattr(removal, "LEAST", 4)
    monkeypatch.setattr(removal, "SHOWN", 3)  # of one model less than the least
    table = removal.removal(gather_results("michel", made.listed, PLAIN))
    assert (len(table.tidy), len(table.shown)) == (6, 4)
    assert "Of each model the first 4 of 6 heads; the CSV has all." in table.notes


def test_importance_is_compared_as_it_is_if_it_is_not_to_be_divided(made):
    plain = PLAIN | {"ablation": AblationSettings(normalise="none")}
    found = removal.heads_in_order(gather_results("michel", made.listed, plain))
    assert (found["importance_compared"] == found["importance"]).all()
    # The steps' sets are those of the file; within each by 3 and 6, 8, 4 and 5, 2.
    assert found["importance"].to_list() == [3, 6, 8, 4, 5, 2]


def test_areas_are_shown_with_their_test(tables):
    first, second, *paper = tables["michel_areas"].shown.to_dict("records")
    assert (first["mean BLEU"], first["difference"]) == ("30.00 (28.00 to 32.00)", "–")
    assert (second["difference"], second["against"]) == ("-10.00", "all, importance")
    assert (first["source"], {row["source"] for row in paper}) == ("ours", {"paper"})
    printed = tables["michel_areas"].tidy
    area = printed[printed["source"] == "paper"].set_index(["pair", "scope", "order"])["area"]
    # Figure 4: encoder-decoder attention needs its heads most; the other two are about level.
    found = [area["wmt14.en-fr", kind, "importance"] for kind in ("dec_enc", "enc_self")]
    assert found == pytest.approx([23.4, 31.4], abs=0.1)


def test_what_rises_far_above_the_whole_model_is_not_near_its_end():
    """Of 116, 114, 50, 14 and −1 % those within 15 points of 100 or 0: the second and two more."""
    kept = [100, 116, 114, 50, 14, -1, 0]
    found = pd.DataFrame({"percent": np.linspace(0, 100, 7), "kept": kept})
    assert profile_cells(found)["end_mass"] == pytest.approx(3 / 5)


def test_profiles_during_training_by_hand(tables):
    first, second, third = ours(tables["michel_training"]).to_dict("records")
    assert first["bleu"] == 1.5 and first["kept_40"] == ""  # below the floor
    # 100, 75, 25, 0 at 0, 33.3, 66.7, 100 %: at 20 % 100 − 0.6 · 25; at 40 % 75 − 0.2 · 50.
    assert (second["kept_20"], second["kept_40"]) == pytest.approx((85, 65))
    # The line falls by 105 from 102.5: residuals −2.5, 7.5, −7.5, 2.5, squares 125 of 6250.
    assert second["r_squared"] == pytest.approx(1 - 125 / 6250)
    assert (second["end_mass"], third["end_mass"]) == (0, 1)  # 75 and 25; 98 and 2
    # Intervals reach 1 of 40 BLEU, 2.5 %, to either side.
    assert (second["kept_low_40"], second["kept_high_40"]) == pytest.approx((62.5, 67.5))
    # Importance (1 1) (1) (1) (1 3) by layers of norm √2, 1, 1 and √10: the squares add up to 4.
    mean = (2 / math.sqrt(2) + 2 + 4 / math.sqrt(10)) / 6
    assert second["cv"] == pytest.approx(math.sqrt(4 / 6 - mean**2) / mean)
    # (1 2) (3) (4) (5 6) and (6 5) (4) (3) (2 1) so divided have the ranks 1 4 5.5 5.5 2 3 and
    # 3 2 5.5 5.5 4 1: squares around 3.5 add up to 17, products to 9.
    assert (first["spearman_with_last"], third["spearman_with_last"]) == pytest.approx((9 / 17, 1))
    raw = (first["spearman_raw_with_last"], third["spearman_raw_with_last"])
    assert raw == pytest.approx((-1, 1))  # undivided, the first is the last in reverse
    shown = tables["michel_training"].shown.to_dict("records")[1]
    assert (shown["kept at 40 %"], shown["test set"]) == ("65 % (62 to 68)", "test")
    epochs = tables["michel_training"].tidy
    paper = epochs[epochs["source"] == "paper"]
    assert len(paper) == 16 and paper.iloc[2]["kept_40"] == 89.1


def test_speed_by_hand(tables):
    found = ours(tables["michel_speed"]).set_index(["percent", "batch_size"])
    # 8 sentences in 2 and 4 s: 4 and 2 a second; in 1 and 2 s: 8 and 4.
    whole, half = found.loc[(0, 1)], found.loc[(50, 1)]
    # With 10 and 15 steps a sentence: 30 a second against 90.
    assert (whole["mean"], half["mean"], half["speedup"]) == (3, 6, 3)
    assert (whole["sd"], half["sd"]) == pytest.approx((math.sqrt(2), 2 * math.sqrt(2)))
    assert found.loc[(50, 16)]["speedup"] == 1.5
    caption = tables["michel_speed"].text
    assert "the first 8 sentences of dev, by 1 thread(s) of a cpu, beam 3." in caption
    printed = tables["michel_speed"].tidy
    bert = printed[(printed["source"] == "paper") & (printed["percent"] == 50)]
    assert (bert["speedup"].astype(float) - 1).round(3).to_list() == [0.018, 0.027, 0.175, 0.176]


def test_seconds_of_importance_by_hand(tables):
    """1 and 4 s beside 2 and 2: geometric means 2 and 2, ratios a half and two.

    Their logarithms are −log 2 and log 2, standard error log 2; t with one degree is 12.706.
    """
    found = tables["michel_importance_speed"].tidy.iloc[0]
    times = found[["importance", "training", "ratio"]].astype(float)
    assert list(times) == pytest.approx([2, 2, 1])
    assert found["ratio_low"] == pytest.approx(2**-12.706, rel=1e-3)
    assert found["ratio_high"] == pytest.approx(2**12.706, rel=1e-3)
    assert tables["michel_importance_speed"].shown.iloc[0]["importance"] == "2 s"


def test_faults_of_files_are_told(made, tmp_path):
    lines = made.listed["ablation"][0].read_text().splitlines()
    path = tmp_path / "a.x-y" / "baseline" / "seed3" / "ablation.csv"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(line for line in lines if ",single," not in line) + "\n")
    changed = made.listed | {"ablation": [path]}
    with pytest.raises(UserError, match=r"ablation\.csv: expected rows of order single"):
        make_tables("michel", changed, PLAIN)
    timed = path.with_name("share_speed.csv")
    lines = made.listed["share_speed"][0].read_text().splitlines()
    timed.write_text("\n".join(line for line in lines if not line.startswith("0,")) + "\n")
    timed.with_suffix(".json").write_text(
        made.listed["share_speed"][0].with_suffix(".json").read_text()
    )
    changed = made.listed | {"share_speed": [timed]}
    with pytest.raises(UserError, match="expected times of the model with all heads, found none"):
        make_tables("michel", changed, PLAIN)


def test_captions_name_source_and_setting(tables):
    for name, table in tables.items():
        assert "a.x-y" in table.text and "6 heads" in table.text, name
    assert michel.SOURCE in tables["michel_pruning"].text
    assert "divided by the L2 norm of its layer and kind." in tables["michel_pruning"].text
    assert MASKED_OR_GATED in tables["michel_pruning"].notes


def test_captions_say_what_intervals_cover_and_which_bleu_the_paper_has(tables):
    found = {name.removeprefix("michel_"): table for name, table in tables.items()}
    scored = ["ablation", "all_but_one", "areas", "pruning", "training", "transfer"]
    assert tell_what_is_covered(found) == sorted([*scored, "removal"])
    for name in scored:
        assert "sacreBLEU's, the paper's: text tokenised by Moses" in found[name].text
        assert "of these sentences; that in table bleu is of whole test sets" in found[name].text
    assert "Intervals and p over heads" in found["transfer"].text


@pytest.mark.slow
def test_the_script_writes_tables_and_figures(made, tmp_path):
    assert run_script("findings", made.flags(tmp_path)) == 0
    names = ("ablation", "all_but_one", "transfer", "pruning", "areas", "speed", "training")
    for name in names:
        for end in ("csv", "md", "tex"):
            assert (tmp_path / f"tables/michel_{name}.{end}").stat().st_size > 0
    for name in ("ablation", "transfer", "pruning", "kinds", "speed", "training"):
        for end in ("pdf", "svg", "png", "csv", "json"):
            assert (tmp_path / f"figures/michel_{name}.{end}").stat().st_size > 0
    shown = json.loads((tmp_path / "tables/michel_pruning.json").read_text())
    assert shown["provenance"]["settings"]["ablation"]["steps"] == 10


@pytest.mark.slow
def test_each_is_made_of_the_files_that_it_declares(made):
    # Five names twice, and two figures that need more measures, which here have no curve of theirs.
    assert len(make_alone("michel", made.listed, PLAIN)) == 12


def test_without_pruning_in_training_there_is_no_exhibit_of_it(made):
    lists = {kind: files for kind, files in made.listed.items() if "training" not in kind}
    left = chapter_of("michel").made_from([kind for kind, found in lists.items() if found])
    assert "michel_training" not in {each.name for each in left.exhibits}
    forms = [each.form for each in left.exhibits]
    assert (forms.count("table"), forms.count("figure")) == (8, 5)
    assert len(make_tables("michel", lists, PLAIN)) == 8
