"""Tables of pruning from hand-made files; every expected number is worked out beside it."""

import pandas as pd
import pytest
from captions import tell_what_is_covered
from chapters import make_alone, make_tables
from script_runner import run_script
from voita_files import MODEL, PAIR, VoitaFiles, pruned_runs, translated

from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.base.head_values import write_head_values
from headcount.base.settings.train import GatesSettings
from headcount.findings.setting import MASKED_OR_GATED
from headcount.findings.tables import write_tables

NAMES = ["table2", "comparison", "falls", "pruning", "speedup"]
FIGURES = ["fig6", "fig7", "fig9", "fig10", "methods", "gates", "speed"]
FEW = ("gates-all-l0", "gates-all-l0.1")  # enough for what is refused


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return pruned_runs(tmp_path_factory.mktemp("runs"))


SETTINGS = {"model": MODEL, "gates": GatesSettings()}


def make(files):
    return make_tables("voita_pruning", files.listed, SETTINGS)


@pytest.fixture(scope="module")
def tables(files):
    found = make(files)
    assert list(found) == [f"voita_{name}" for name in NAMES]
    return {name.removeprefix("voita_"): table for name, table in found.items()}


def record(table, run, seed):
    rows = table.tidy[(table.tidy["run"] == run) & (table.tidy["seed"] == seed)]
    (row,) = rows.to_dict("records")
    return row


def test_a_pruned_run_is_recorded_with_its_heads_and_its_loss(tables):
    row = record(tables["pruning"], "gates-all-l0.1", 2)
    expected = {"pair": PAIR, "test_set": "test", "how": "gates", "scope": "all", "lambda": 0.1}
    # Gates 0 0 | 1 | 1 | 1 1: of two encoder layers the first has lost both heads.
    expected |= {"heads": 6, "heads_left": 4, "enc_self": 1, "dec_self": 1, "dec_enc": 2}
    expected |= {"enc_self_layers": "0 1", "dec_self_layers": "1", "dec_enc_layers": "2"}
    expected |= {"start": "baseline", "scope_heads": 6, "scope_left": 4}
    # Larger of P(0), P(1): 0.95 0.85 0.95 0.95 0.8 0.7; three of six are above 0.9.
    expected |= {"polarised": 0.5}
    # 3, 2 and 0 of 200 lines are wrong in this run, at its start and in the control.
    expected |= {"bleu": 98.5, "start_bleu": 99.0, "control_bleu": 100.0}
    assert {name: row[name] for name in expected} == pytest.approx(expected)
    assert row["delta"] == pytest.approx(-1.5)
    assert row["delta_low"] < -1.5 < row["delta_high"] <= 0


def test_only_heads_of_the_scope_are_gates(tables):
    row = record(tables["pruning"], "gates-enc_self-l0.2", 1)
    # 0.95, 0.95 and 0.85 in the encoder; elsewhere nothing was gated.
    assert row["polarised"] == pytest.approx(2 / 3)
    assert (row["scope_left"], row["scope_heads"], row["heads_left"]) == (1, 3, 4)
    # As many wrong lines as the control, the same ones: no difference in any resample.
    assert [row[name] for name in ("delta", "delta_low", "delta_high", "p")] == [0, 0, 0, 1]


def test_a_model_without_heads_has_finite_numbers(tables):
    row = record(tables["pruning"], "gates-all-l0.5", 1)
    assert (row["heads_left"], row["enc_self_layers"], row["bleu"]) == (0, "0 0", 0)
    # Every line is wrong in every resample.
    found = [row[name] for name in ("delta", "delta_low", "delta_high")]
    assert found == pytest.approx([-100] * 3)
    assert not tables["pruning"].tidy.isna().any(axis=None)


def test_two_seeds_are_shown_as_mean_and_deviation(tables):
    shown = tables["pruning"].shown.set_index("run")
    row = shown.loc["gates-all-l0.1"]
    # 99.5 and 98.5: mean 99, standard deviation 1 / √2.
    assert (row["BLEU"], row["difference"]) == ("99.00 ± 0.71", "-1.00 ± 0.71")
    assert (row["heads left"], row["encoder"], row["polarised"]) == ("4", "1", "0.50 ± 0.00")
    assert shown.loc["gates-all-l0", "difference"] == "–"
    assert shown.loc["ranked-gates-all-l0.1", "polarised"] == "–"


def fall(table, limit, **names):
    rows = table.tidy[table.tidy["limit"] == limit]
    for name, value in names.items():
        rows = rows[rows[name] == value]
    (row,) = rows.to_dict("records")
    return row


def test_bleu_falls_first_at_the_run_with_most_heads_below_the_limit(tables):
    falls = tables["falls"]
    first = {"scope": "all", "start": "baseline", "seed": 1}
    # Seed 1: 6 heads 0, 4 heads −0.5, no heads −100.
    row = fall(falls, 0.25, **first)
    assert (row["holds_at"], row["falls_at"], row["lambda"]) == (6, 4, 0.1)
    row = fall(falls, 1.0, **first)
    assert (row["holds_at"], row["falls_at"], row["lambda"]) == (4, 0, 0.5)
    assert (row["holds_delta"], row["delta"]) == pytest.approx((-0.5, -100))
    # Seed 2: 4 heads −1.5.
    assert fall(falls, 1.0, **(first | {"seed": 2}))["falls_at"] == 4
    assert MASKED_OR_GATED in falls.notes


def test_a_sweep_that_never_falls_says_so(tables):
    row = fall(tables["falls"], 0.25, scope="enc_self", seed=1)
    assert (row["scope_heads"], row["holds_at"], row["falls_at"], row["p"]) == (3, 1, "", "")
    shown = tables["falls"].shown
    shown = shown[shown["scope"] == "encoder heads"].iloc[0]
    assert (shown["holds to"], shown["falls at"]) == ("1 of 3", "no run of the sweep")


def test_which_kind_goes_first(tables):
    row = fall(tables["falls"], 1.0, scope="all", start="baseline", seed=1)
    # Shares left: 1/3, 1, 1 with four heads, and none of any kind without heads.
    shares = [row[f"{kind}_share"] for kind in ("enc_self", "dec_self", "dec_enc")]
    assert shares == pytest.approx([1 / 6, 1 / 2, 1 / 2])
    assert (row["first_kind"], row["enc_self_lowest"], row["runs_shorn"]) == ("enc_self", 1, 2)


def test_a_control_that_lost_a_head_does_not_say_which_kind_goes_first(tmp_path):
    """Gates of λ = 0 without the decoder's one head of self-attention: shares stay as above."""
    files = pruned_runs(tmp_path)
    place = ("gates-all-l0", "seed1", "heads.csv")
    (path,) = [path for path in files.listed["kept"] if path.parts[-3:] == place]
    chances = {"p_zero": [0.1, 0.1, 0.1, 0.9, 0.1, 0.1], "p_one": [0.9, 0.9, 0.9, 0.1, 0.9, 0.9]}
    write_head_values(path, files.grid, {"gate": [1, 1, 1, 0, 1, 1], **chances})
    files.listed |= {"untuned": [], "untuned_facts": []}  # of the control with all heads
    row = fall(make(files)["voita_falls"], 0.25, scope="all", start="baseline", seed=1)
    assert (row["holds_at"], row["runs"], row["runs_shorn"]) == (5, 2, 2)
    shares = [row[f"{kind}_share"] for kind in ("enc_self", "dec_self", "dec_enc")]
    assert shares == pytest.approx([1 / 6, 1 / 2, 1 / 2])


def test_table_2_pairs_fine_tuning_with_training_from_scratch(tables):
    tidy = tables["table2"].tidy
    ours = tidy[(tidy["source"] == "ours") & (tidy["seed"] == 1)]
    found = ours[["run", "training", "enc_self", "dec_self", "dec_enc", "bleu"]].values.tolist()
    # No run of the encoder alone has a twin from scratch.
    assert found == [
        ["baseline", "none", 3, 1, 2, 99.0],
        ["random-1", "none", 3, 1, 2, 98.0],
        ["gates-all-l0", "trained", 3, 1, 2, 100.0],
        ["gates-all-l0.1", "trained", 1, 1, 2, 99.5],
        ["gates-all-l0.5", "trained", 0, 0, 0, 0.0],
        ["scratch-gates-all-l0.1", "scratch", 1, 1, 2, 97.5],
        ["gates-all-l0-from-random-1", "trained", 3, 1, 2, 99.5],
        ["gates-all-l0.1-from-random-1", "trained", 2, 1, 2, 99.0],
    ]
    shown = tables["table2"].shown
    row = shown[(shown["start"] == "baseline") & (shown["λ"] == "0.1")].iloc[0]
    # Scratch: 97.5 and 96.5.
    cells = ["1/1/2", "99.00 ± 0.71", "97.00 ± 0.71", "ours"]
    assert row[["heads", "from trained", "from scratch", "source"]].to_list() == cells
    paper = shown[shown["heads"] == "12/21/25"].iloc[0]
    assert paper[["from trained", "from scratch"]].to_list() == ["29.36", "28.95"]


COUNTED = ("table2", "pruning", "comparison")
"""Tables with models from scratch."""


def test_table_2_says_how_long_each_model_was_trained(tables, files):
    tidy = tables["table2"].tidy
    ours = tidy[(tidy["source"] == "ours") & (tidy["seed"] == 2)].set_index("run")
    found = ours[["updates", "updates_before"]].T.to_dict("list")
    assert found["baseline"] == [1200, 0] and found["gates-all-l0.5"] == [100, 1200]
    assert found["gates-all-l0.1-from-random-1"] == [100, 1200]
    assert found["scratch-gates-all-l0.1"] == [1300, 0]
    words = (
        "Updates, by the curves: 1,200 of the model that was pruned, then 100 of fine-tuning; "
        "1,300 from scratch."  # 1,200 + 100, so that nothing has to be said of them
    )
    for name in COUNTED:
        assert words in tables[name].notes and not tables[name].warnings


def test_fewer_updates_from_scratch_than_in_total_are_no_fair_comparison(tmp_path):
    """1,200 of the model that was pruned and 100 of fine-tuning, but 100 from scratch."""
    made = pruned_runs(tmp_path, [*FEW, "scratch-gates-all-l0.1"], [1])
    made.listed["pruned_curves"][-1].write_text("step,train_loss,dev_loss,seconds\n100,2,2,1\n")
    tables = make(made)
    assert "then 100 of fine-tuning; 100 from scratch. Translated" in tables["voita_table2"].text
    for name in COUNTED:
        (warning,) = tables[f"voita_{name}"].warnings
        assert warning.startswith("Models from scratch had not as many updates as pruned ones")
    made.listed["pruned_curves"].pop()
    with pytest.raises(UserError, match="expected curves.csv of scratch-gates-all-l0.1 .*seed 1"):
        make(made)


def test_scratch_beside_pruned_models_of_an_import_is_no_fair_comparison(tmp_path):
    """The updates here are equal, but the imported model was trained elsewhere, too."""
    made = pruned_runs(tmp_path, [*FEW, "scratch-gates-all-l0.1"], [1])
    assert not make(made)["voita_table2"].warnings
    imported = {**SETTINGS, "model": SETTINGS["model"].model_copy(update={"imported": "own"})}
    (warning,) = make_tables("voita_pruning", made.listed, imported)["voita_table2"].warnings
    assert "imported model" in warning


def test_the_papers_bleu_is_called_another_metric(tables):
    words = "Our BLEU is sacreBLEU's, the paper's: tokenised, lower-cased text"
    assert words in tables["table2"].text
    tidy = tables["table2"].tidy
    told = tidy.loc[tidy["source"] == "paper", "signature"].unique()
    assert list(told) == [
        "tokenised, lower-cased text, by the authors' code; the paper does not say"
    ]


def test_captions_say_what_intervals_cover(tables):
    assert tell_what_is_covered(tables) == ["comparison", "falls", "pruning"]


def contender(table, seed=1, **names):
    rows = table.tidy[table.tidy["seed"] == seed]
    for name, value in names.items():
        rows = rows[rows[name] == value]
    return rows


def test_contenders_meet_at_equal_numbers_of_heads(tables):
    table = tables["comparison"]
    tuned = contender(table, comparison="tuned", gates_run="gates-all-l0.1")
    assert tuned["contender"].to_list() == ["gates", "ranked", "drawn", "scratch"]
    assert set(tuned["heads_left"]) == {4}
    # Wrong lines: 1, 3, 9, 5; the control has none.
    assert tuned["control_delta"].to_list() == pytest.approx([-0.5, -1.5, -4.5, -2.5])
    assert tuned["delta"].to_list()[0] == ""
    assert tuned["delta"].to_list()[1:] == pytest.approx([-1.0, -4.0, -2.0])
    untuned = contender(table, comparison="untuned")
    assert untuned["bleu"].to_list() == [96, 98, 95, 93]
    assert set(untuned["against"]) == {"baseline"} and set(untuned["heads_left"]) == {4}
    drawn = table.shown[
        (table.shown["contender"] == "drawn") & (table.shown["comparison"] != "tuned")
    ]
    # Mean of two draws, the same in either seed: 94.
    assert drawn["BLEU"].to_list() == ["94.00 ± 0.00 (93.00 to 95.00)"]


def test_starts_meet_at_one_lambda(tables):
    found = contender(tables["comparison"], comparison="start")
    assert found["contender"].to_list() == ["baseline", "random-1"]
    assert found["heads_left"].to_list() == [4, 5]
    # BLEU 99.5 and 99; their own controls 100 and 99.5.
    assert found["control_delta"].to_list() == pytest.approx([-0.5, -0.5])
    assert found["delta"].to_list()[1] == pytest.approx(-0.5)


def test_speed_is_the_median_against_the_baseline(tables):
    tidy = tables["speedup"].tidy
    chosen = (tidy["phase"] == "decode") & (tidy["batch_size"] == 16) & (tidy["seed"] == 1)
    base, pruned = tidy[chosen].to_dict("records")
    # 2.2 s and 1.1 s for 100 sentences; the slowest repeat is shown, and does not count. A search
    # of 10 and of 15 steps: 2.2 ms a step against 11 / 15.
    assert (base["milliseconds"], base["high"], base["speedup"]) == pytest.approx((22, 90, 1))
    assert (pruned["milliseconds"], pruned["speedup"]) == pytest.approx((11, 3))
    assert (base["steps"], pruned["steps"]) == (10, 15)
    encoded = tidy[(tidy["phase"] == "encode") & (tidy["run"] != "baseline")]
    assert encoded["speedup"].to_list() == pytest.approx([2] * len(encoded))
    assert "11 (10–12), 15.0 steps, ×3.00" in tables["speedup"].shown["decode, batch 16"].to_list()
    assert (pruned["repeats"], pruned["how"], base["how"]) == (3, "gates", "")


@pytest.mark.slow
def test_all_is_written_and_captions_name_units_and_runs(files, tmp_path):
    gates = GatesSettings(updates=777, init="glorot", eval="louizos")
    assert run_script("findings", files.flags(gates, tmp_path)) == 0
    written = {path.stem for path in (tmp_path / "figures").iterdir()}
    assert written == {f"voita_{name}" for name in FIGURES}
    for name in FIGURES:
        for end in ("pdf", "svg", "png", "csv", "json"):
            assert (tmp_path / "figures" / f"voita_{name}.{end}").stat().st_size > 0
    for name in NAMES:
        notes = " ".join(read_json(tmp_path / "tables" / f"voita_{name}.json")["notes"])
        for words in ("nats per target token", "777 updates", "multi.en-de; seeds 1, 2"):
            assert words in notes
        assert "drawn evenly around 0" in notes and "noiseless gate" in notes
        table = pd.read_csv(tmp_path / "tables" / f"voita_{name}.csv")
        assert len(table) > 0


@pytest.mark.slow
def test_every_exhibit_is_made_of_what_it_says_that_it_needs(files):
    made = make_alone("voita_pruning", files.listed, SETTINGS)
    assert made == {f"voita_{name}" for name in NAMES + FIGURES}


def test_without_pruned_runs_there_are_no_exhibits(files):
    lists = {kind: [] if "prun" in kind else found for kind, found in files.listed.items()}
    assert make_tables("voita_pruning", lists, SETTINGS) == {}


def test_a_missing_control_is_named(tmp_path):
    made = pruned_runs(tmp_path, ["gates-enc_self-l0.2"], [1])
    with pytest.raises(UserError, match=r"expected its control 'gates-enc_self-l0'.*add it"):
        make(made)


def test_a_run_without_its_run_json_is_named(tmp_path):
    made = pruned_runs(tmp_path, FEW, [1])
    made.listed["pruned_runs"].pop()
    named = rf"{FEW[-1]}/seed1/heads\.csv: expected the run\.json of its run too, found that of"
    with pytest.raises(UserError, match=named):
        make(made)


def test_missing_gates_runs_translations_and_baselines_are_named(tmp_path):
    made = pruned_runs(tmp_path / "gates", ["gates-all-l0", "ranked-gates-all-l0.1"], [1])
    with pytest.raises(UserError, match="as many as gates-all-l0.1, found no such run"):
        make(made)
    others = [f"{run}-from-random-1" for run in FEW]
    made = pruned_runs(tmp_path / "translations", others, [1])
    made.listed["pruned_translations"].pop()
    with pytest.raises(UserError, match="expected test of gates-all-l0.1-from-random-1"):
        make(made)
    made = pruned_runs(tmp_path / "scores", FEW, [1])
    made.listed["start_scores"].pop(0)
    with pytest.raises(UserError, match=r"expected bleu.json of baseline \(multi.en-de, seed 1\)"):
        make(made)


def test_masks_of_another_number_of_heads_are_stale(tmp_path):
    made = pruned_runs(tmp_path, FEW, [1])
    (path,) = made.listed["untuned"]
    path.write_text(path.read_text().replace("l0.1,,2,", "l0.1,,3,"))
    with pytest.raises(UserError, match="as gates-all-l0.1 expected 4 heads left, found 3"):
        make(made)


def test_speed_without_the_baseline(tmp_path):
    made = pruned_runs(tmp_path, FEW, [1])
    (path,) = made.listed["pruned_speed"]
    text = path.read_text()
    path.write_text(text.replace("baseline,", "random-1,"))
    found = make(made)["voita_speedup"]
    assert "the speed-up per step against random-1." in found.caption
    assert (found.tidy.loc[found.tidy["run"] == "random-1", "speedup"] == 1).all()
    path.write_text("".join(line for line in text.splitlines(True) if "baseline," not in line))
    with pytest.raises(UserError, match=r"seed 1: expected baseline timed beside .*encode"):
        make(made)


def test_a_control_alone_has_all_tables(tmp_path):
    """One seed, λ = 0 only, nothing removed: no table is empty, no number is missing."""
    made = VoitaFiles(tmp_path / "runs", MODEL)
    score, lines = translated(0)
    made.reference(PAIR, "test", lines)
    made.scores("train", (PAIR, "baseline", 7), {"test": (score, lines)})
    made.scores("prune", (PAIR, "gates-all-l0", 7), {"test": (score, lines)})
    made.heads((PAIR, "gates-all-l0", 7), [1] * 6, [0.01] * 6)
    made.curve("train", (PAIR, "baseline", 7), 40)
    made.curve("prune", (PAIR, "gates-all-l0", 7), 10)
    made.speed(
        PAIR, 7, ["baseline,6,10,40,encode,1,1,5,5,1", "gates-all-l0,6,10,40,encode,1,1,5,5,1"]
    )
    found = make(made)
    write_tables(found, tmp_path / "out", {})
    assert pd.read_csv(tmp_path / "out/voita_comparison.csv")["contender"].to_list() == ["gates"]
