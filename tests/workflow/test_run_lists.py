"""Runs in an experiment file: mappings, entries that stand for several runs, what is refused."""

from pathlib import Path

import pytest

from headcount.base.errors import UserError
from headcount.base.settings.experiment import load_experiment
from headcount.base.settings.runs import labels

CONFIG = Path(__file__).resolve().parents[2] / "config"
HEADS = "pairs: [synthetic.en-art]\nmodel: {preset: small}\n"  # 36 heads


def load(folder, text):
    (folder / "x.yaml").write_text(HEADS + text)
    return load_experiment("x", folder)


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ("{method: baseline}", ["baseline"]),
        ("{method: random, heads: 4}", ["random-4"]),
        ("{method: random, share: 12.5%}", ["random-5"]),  # 4.5 of 36, halves go up
        ("{heads: 7, method: importance, decay: 0.90, signed: true}", ["impt-7-signed-ema0.9"]),
        (
            "{method: importance, heads: 7, probability: 0.5, unit: batch}",
            ["impt-7-p0.5-batch"],
        ),
        ("{method: importance, heads: [1, 3]}", ["impt-1", "impt-3"]),
        (  # the model has 4
            "{method: baseline, attention_heads: [1, 2, 4, 8]}",
            ["baseline-h1", "baseline-h2", "baseline", "baseline-h8"],
        ),
        (  # the model has 0.1
            "{method: baseline, dropout: [0, 0.1, 0.2]}",
            ["baseline-d0", "baseline", "baseline-d0.2"],
        ),
        ("{method: random, share: 25%, dropout: 0.2}", ["random-9-d0.2"]),
        (  # the last list goes fastest
            "{share: [25%, 50%], method: [random, importance]}",
            ["random-9", "impt-9", "random-18", "impt-18"],
        ),
    ],
)
def test_an_entry_stands_for_training_runs(tmp_path, entry, names):
    assert labels(load(tmp_path, f"runs: [{entry}]").runs) == names


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ("{method: gates, lambda: [0, 0.1]}", ["gates-all-l0", "gates-all-l0.1"]),
        (
            "{method: gates, scope: [all, enc_self], lambda: 0}",
            ["gates-all-l0", "gates-enc_self-l0"],
        ),
        (
            "{lambda: 0, method: [gates, scratch, importance, random], from: impt-12.5%}",
            [f"{word}gates-all-l0-from-impt-5" for word in ("", "scratch-", "ranked-", "drawn-")],
        ),
        (
            "{method: gates, lambda: 0, from: {method: importance, heads: 5}}",
            ["gates-all-l0-from-impt-5"],
        ),
        (
            "{method: gates, from: [baseline, impt-5], lambda: [0, 1e-6]}",
            [f"gates-all-l{n}{of}" for of in ("", "-from-impt-5") for n in ("0", "0.000001")],
        ),
    ],
)
def test_an_entry_stands_for_pruned_runs(tmp_path, entry, names):
    found = load(tmp_path, f"runs: [baseline, impt-5]\npruned: [{entry}]")
    assert labels(found.pruned) == names


def test_short_names_and_mappings_stand_side_by_side(tmp_path):
    text = "runs: [impt-5, {method: baseline}]\nablation: {runs: [{method: [baseline]}]}"
    found = load(tmp_path, text)
    assert labels(found.runs) == ["impt-5", "baseline"]
    assert labels(found.ablation.runs) == ["baseline"]
    assert found.model_dump()["runs"] == ["impt-5", "baseline"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("runs: [{method: importance, hads: 3}]", r"yaml:3: runs\[0\]\.hads: unk.*nearest: heads"),
        ("runs: [{heads: 3}]", r"runs\[0\]\.method: missing; expected baseline, random or impor"),
        ("runs: [{method: impt, heads: 3}]", r"method: expected baseline, random or importance"),
        ("runs: [{method: importance}]", r"runs\[0\]: method importance: expected heads or share"),
        ("runs: [{method: random, heads: 3, share: 5%}]", "expected heads or share, one of the t"),
        ("runs: [{method: random, heads: 3, decay: 0.5}]", "method random takes no decay; .*impor"),
        ("runs: [{method: baseline, heads: 3}]", "baseline takes no heads; .*random or importance"),
        ("runs: [baseline,\n {method: random, heads: [3, 37]}]", r"4: runs\[1\]: run 'random-37'"),
        ("runs: [{method: random, heads: []}]", r"runs\[0\]: heads: expected a value, or a list"),
        ("runs: [{method: random, heads: 3.5}]", r"runs\[0\]\.heads: expected a whole number"),
        ("runs: [{method: random, share: 12.5}]", r"share: expected text, found 12\.5; quote it"),
        ("runs: [{method: random, share: 5}]", r"share: expected text, found 5; quote it"),
        ("runs: [{method: random, share: a lot}]", r"as in 12.5%, found a lot; nearest: 12.5%"),
        (
            "runs: [{method: importance, heads: 3, unit: word}]",
            "sentence, batch, position or token",
        ),
        ("runs: [{method: importance, heads: 3, unit: batch, signed: true}]", "remove batch"),
        ("runs: [{method: importance, heads: 3, decay: 0.12345}]", "decay: expected at most 4 de"),
        ("runs: [impt-5, {method: importance, share: 12.5%}]", "'impt-5' is listed twice; .*share"),
        (
            "runs: [baseline-h2]",
            "yaml:3: runs: 'baseline-h2' is compared with 'baseline', .* add it",
        ),
        ("runs: [impt-5, impt-5-d0.1]", "'impt-5' is listed twice; .* dropout and attention_heads"),
        ("runs: [baseline, baseline-h4]", "'baseline' is listed twice; .* attention_heads as the"),
        (
            "runs: [baseline, {method: baseline, attention_heads: [2, 3]}]",
            r"yaml:3: runs\[1\]: run 'baseline-h3': attention_heads: .* divisor of d_model 256",
        ),
        (
            "runs: [{method: baseline, attention_heads: 0}]",
            "a whole number from 1 to 1000, found 0",
        ),
        (
            "runs: [{method: random, heads: 3, attention_heads: 2}]",
            "random takes no attention_head",
        ),
        (
            "runs: [{method: baseline, heads: 3, attention_heads: 2}]",
            "baseline takes no heads; rem",
        ),
        (
            "runs: [baseline, baseline-h2]\nablation: {runs: [baseline-h1]}",
            r"'baseline-h1' is not among `runs` \(baseline, baseline-h2\)",
        ),
        (
            "pruned: [{method: gates, lambda: 0, from: baseline-h2}]",
            r"yaml:3: pruned\[0\]: from: expected .* found baseline-h2; name one without",
        ),
        ("pruned: [{method: gates, lamda: 0}]", r"pruned\[0\]\.lamda: unknown.*nearest: lambda"),
        ("pruned: [{method: gates}]", r"pruned\[0\]\.lambda: missing; expected a number"),
        ("pruned: [{method: gates, lambda: [0, -1]}]", r"pruned\[0\]\.lambda: .* found -1"),
        ("pruned: [{method: gates, lambda_: 0}]", r"pruned\[0\]\.lambda_: unknown"),
        ("pruned: [{method: gates, lambda: 1e-10}]", "lambda: expected at most 9 decimals"),
        (
            "pruned: [{method: gate, lambda: 0}]",
            "expected gates, scratch, importance, random or subset",
        ),
        ("pruned: [{method: gates, lambda: 0, from: imp-5}]", r"pruned\[0\]\.from: .*: impt-5"),
        ("pruned: [{method: gates, lambda: 0, from: {heads: 5}}]", r"from\.method: missing"),
        ("pruned: [{method: gates, lambda: 0, from: 5}]", r"from: expected text or a mapping"),
        ("pruned: [{method: gates, lambda: 0, from: impt-5}]", "'impt-5', which is not among"),
    ],
)
def test_an_entry_that_is_no_run_is_refused_at_its_line(tmp_path, text, told):
    with pytest.raises(UserError, match=told):
        load(tmp_path, text)


def gates(scope, *lambdas, before="", after=""):
    return [f"{before}gates-{scope}-l{value}{after}" for value in lambdas]


WORDS = ("scratch", "ranked", "drawn")
CONTROLS = [gates("all", "0.01", "0.05", before=f"{word}-") for word in WORDS]
STARTS = ("-from-random-9", "-from-impt-9")


@pytest.mark.parametrize(
    ("name", "runs", "pruned"),
    [
        (
            "tiny",
            ["baseline", "baseline-h1"],
            [*gates("all", "0", "0.3"), "scratch-gates-all-l0.3", "ranked-gates-all-l0.3"]
            + ["subset-all-k6"],
        ),
        (
            "quickstart",
            ["baseline", "random-6", "impt-6", "random-12"],
            [
                *gates("all", "0", "0.003", "0.01", "0.03", "0.1"),
                *gates("enc_self", "0", "0.03", "0.1"),
                *(f"{word}-gates-all-l0.03" for word in WORDS),
            ],
        ),
        (
            "multi30k",
            ["baseline", "random-9", "impt-9", "random-18", "impt-18"],
            [
                *gates("all", "0", "0.001", "0.003", "0.01", "0.02", "0.05", "0.1"),
                *gates("enc_self", "0", "0.001", "0.003", "0.01", "0.03", "0.1"),
                *(name for names in CONTROLS for name in names),
                *(name for start in STARTS for name in gates("all", "0", "0.02", after=start)),
            ],
        ),
        (  # of 72 heads
            "multi30k_seeds",
            ["baseline", "random-9", "random-18", "impt-9", "impt-18"]
            + ["impt-9-signed", "impt-9-signed-rest3", "random-9-rest3"],
            [
                *gates("all", "0", "0.01", "0.02", "0.05", "0.1"),
                "scratch-gates-all-l0.05",
                *(
                    name
                    for start in ("random-9", "random-18", "impt-9", "impt-9-signed")
                    for name in gates("all", "0", "0.02", after=f"-from-{start}")
                ),
            ],
        ),
        (
            "multi30k_gates",
            ["baseline"],
            gates("enc_self", "0", "0.01", "0.03", "0.1"),
        ),
        (
            "collapse",
            ["baseline", "random-6"]
            + ["impt-1", "impt-6", "impt-6-batch", "impt-6-position", "impt-6-token"]
            + ["impt-6-spare_dec_self"]
            + [f"impt-6-held{updates}" for updates in (10, 30, 60, 120)]
            + ["impt-6-p0.5", "impt-6-signed", "impt-6-ema0.9"],
            [],
        ),
        (
            "collapse_later",
            ["baseline", "impt-6-after100", "impt-6-after200", "impt-6-held60-after100"]
            + [f"impt-6-held60-held_in_{kind}-after100" for kind in ("enc_self", "dec_self")],
            [],
        ),
        (
            "collapse_fresh",
            ["baseline", "impt-1", "impt-6", "impt-6-batch", "impt-6-position", "impt-6-after100"],
            [],
        ),
        ("collapse_deep", ["baseline", "random-18", "impt-18", "impt-1"], []),
        (
            "headmask_variants",
            ["baseline", "random-6", "impt-6", "impt-6-p0.5", "impt-6-signed"]
            + ["impt-6-signed-rest3", "random-6-rest3", "impt-6-rest3"],
            [],
        ),
        ("collapse_slow", ["baseline", "impt-1", "impt-6"], []),
        ("roles", ["baseline"], ["gates-enc_self-l0", "gates-enc_self-l0.1"]),
        (  # of 48 heads
            "lowdata",
            ["baseline", *(f"baseline-d0.{n}" for n in range(1, 5))]
            + ["random-1", "random-6", "random-12", "random-24"]
            + ["random-6-d0.1", "random-6-d0.3", "impt-6-signed", "impt-6-signed-rest3"]
            + ["random-6-rest3"],
            [],
        ),
        (
            "lowdata_long",
            ["baseline", *(f"baseline-d0.{n}" for n in range(1, 4))]
            + ["random-6-d0.1", "random-6-d0.2"],
            [],
        ),
    ],
)
def test_runs_of_the_experiments_in_their_order(name, runs, pruned):
    found = load_experiment(name, CONFIG)
    assert (labels(found.runs), labels(found.pruned)) == (runs, pruned)
