"""Pruned runs: what mappings and short names mean, what is refused, what runs need."""

import re

import pytest

from headcount.base.errors import UserError
from headcount.base.settings.experiment import Experiment, load_experiment
from headcount.base.settings.flags import read_run_flag
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.runs import PrunedSettings, label, labels
from headcount.base.settings.training_runs import BASELINE, RunSettings

MODEL = ModelSettings(encoder_layers=5, decoder_layers=4, heads=4)  # 5 + 2 · 4 layers of 4: 52
NONE = "gates-all-l0.01-from-none"
IMPT = RunSettings(method="importance", heads=7, probability=0.5, decay=0.9)


def read(text: str) -> PrunedSettings:
    """The run that a flag names, of a model with 52 heads."""
    return read_run_flag(text, PrunedSettings, MODEL)


def run_of(method: str, scope: str, lambda_: float, init_from=BASELINE) -> PrunedSettings:
    keys = {"method": method, "scope": scope, "lambda": lambda_, "from": init_from}
    return PrunedSettings.model_validate(keys)


def subset_of(scope: str, heads: int, init_from=BASELINE) -> PrunedSettings:
    keys = {"method": "subset", "scope": scope, "heads": heads, "from": init_from}
    return PrunedSettings.model_validate(keys)


@pytest.mark.parametrize(
    ("text", "run", "name"),
    [
        ("gates-all-l0", run_of("gates", "all", 0.0), "gates-all-l0"),
        ("gates-all-l0.000", run_of("gates", "all", 0.0), "gates-all-l0"),
        ("gates-all-l10", run_of("gates", "all", 10.0), "gates-all-l10"),
        ("gates-enc_self-l0.020", run_of("gates", "enc_self", 0.02), "gates-enc_self-l0.02"),
        # 0.000001 has an exponent in Python's own words.
        ("gates-all-l0.000001", run_of("gates", "all", 1e-6), "gates-all-l0.000001"),
        ("gates-all-l0.1-from-baseline", run_of("gates", "all", 0.1), "gates-all-l0.1"),
        (
            "ranked-gates-all-l0.01-from-random-12.5%",  # of 52 heads 6.5, halves go up
            run_of("importance", "all", 0.01, RunSettings(method="random", heads=7)),
            "ranked-gates-all-l0.01-from-random-7",
        ),
        (
            "scratch-gates-enc_self-l2-from-impt-7-ema0.9-p0.5",
            run_of("scratch", "enc_self", 2.0, IMPT),
            "scratch-gates-enc_self-l2-from-impt-7-p0.5-ema0.9",
        ),
        ("drawn-gates-all-l3", run_of("random", "all", 3.0), "drawn-gates-all-l3"),
        ("subset-all-k8", subset_of("all", 8), "subset-all-k8"),
        (
            "subset-enc_self-k020-from-random-12.5%",  # 5 layers of 4 heads
            subset_of("enc_self", 20, RunSettings(method="random", heads=7)),
            "subset-enc_self-k20-from-random-7",
        ),
        ("gates-all-l0.010-from-none", run_of("gates", "all", 0.01, "none"), NONE),
        (
            "scratch-gates-enc_self-l0.2-from-none",
            run_of("scratch", "enc_self", 0.2, "none"),
            "scratch-gates-enc_self-l0.2-from-none",
        ),
    ],
)
def test_a_name_is_read_and_printed(text, run, name):
    assert read(text) == run
    assert label(run) == name
    assert read(name) == run
    assert re.fullmatch(r"[a-z0-9._-]+", name)  # safe in paths and commands


def test_a_control_names_its_gates_run_and_a_scope_its_kinds():
    run = read("drawn-gates-enc_self-l0.02-from-random-4")
    assert label(run.gates_run) == "gates-enc_self-l0.02-from-random-4"
    assert run.gates_run.gates_run == run.gates_run
    assert run.kinds == ("enc_self",)
    assert read("gates-all-l1").kinds == ("enc_self", "dec_self", "dec_enc")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("gates-all-l-0.1", "--run: .*lambda: expected a number, 0 or more .*, found -0.1"),
        ("ranked-gates-all-l-1", "lambda: expected a number, 0 or more .*, found -1.0"),
        ("gates-enc_sel-l1", "scope: expected enc_self or all, found 'enc_sel'"),
        ("gates-x-l1", "scope: expected enc_self or all, found 'x'"),
        ("gates-all-l1e-3", "a plain decimal number .*; nearest: gates-all-l0.001"),
        ("gates-all-l", "expected gates-<scope>-l<λ>"),
        ("gates-all-0.3", "found 'gates-all-0.3'; nearest: gates-all-l0.3$"),
        ("ranked-gates-all-0.5-from-impt-6", "nearest: ranked-gates-all-l0.5-from-impt-6$"),
        ("gate-all-l0.3", "nearest: gates-all-l0.3"),
        ("rank-gates-all-l0.3", "nearest: ranked-gates-all-l0.3"),
        ("gates-all-lnan", "expected gates-<scope>"),
        ("subset-all-8", "or subset-<scope>-k<heads that stay>; .*; nearest: subset-all-k8"),
        ("subset-gates-all-l1", "expected gates-<scope>"),
        ("subset-all-k0", "heads: expected a whole number, 1 or more"),
        ("subset-enc_self-k21", "expected 1 to 20 heads, as many as the scope has, found 21; nea"),
        ("subset-all-k8-from-none", "method subset fine-tunes what is left of a trained model"),
        ('{"method": "subset"}', "method subset: expected heads, how many stay, and no lambda"),
        (
            '{"method": "subset", "heads": 8, "lambda": 0.1}',
            "method subset: expected heads, how many stay, and no lambda",
        ),
        (
            '{"method": "gates", "heads": 8, "lambda": 0.1}',
            "method gates: expected lambda and no heads",
        ),
        ("gates-all-l0.1-from-", "expected gates-<scope>"),
        ("gates-all-l0.1-from-random-53", "--run: run 'random-53': expected 0 to 52 heads"),
        (
            "gates-all-l0.1-from-gates-all-l1",
            "expected baseline, .* found 'gates-all-l1'",
        ),
        ("gates-all-l0.1\n", r"found 'gates-all-l0.1\\n'"),
        ("../gates-all-l0.1", r"found '\.\./gates"),
        (
            "gates-all-l1-from-baseline-h2",
            "from: expected a .* found baseline-h2; name one without",
        ),
        ("gates-all-l1-from-non", "expected baseline, .* found 'non'.*weights are written none"),
        ("ranked-gates-all-l1-from-none", "method importance fine-tunes .* found from: none; name"),
        ("drawn-gates-all-l1-from-none", "method random .* or take method gates or scratch"),
        ("", "found ''"),
    ],
)
def test_a_wrong_name_says_what_is_expected(text, told):
    with pytest.raises(UserError, match=told):
        read(text)


def test_what_a_run_needs_must_be_made():
    def check(*pruned: str, runs: tuple[str, ...] = ("random-4",)) -> None:
        names = [f"{name}-from-random-4" for name in pruned]
        Experiment.model_validate({"pairs": ["c.en-de"], "runs": [*runs], "pruned": names})

    check("scratch-gates-all-l1", "gates-all-l1", "gates-all-l0")
    with pytest.raises(ValueError, match=r"starts from the run 'random-4', which is not among"):
        check("gates-all-l1", runs=("baseline", "random-5"))
    told = "'scratch-gates-all-l1-from-random-4' needs .* 'gates-all-l1-from-random-4' keeps, which"
    with pytest.raises(ValueError, match=told):
        check("scratch-gates-all-l1", "gates-all-l0")
    told = "'gates-all-l1-from-random-4' needs its control 'gates-all-l0-from-random-4', trained"
    for lacking in ([], ["gates-enc_self-l0"]):
        with pytest.raises(ValueError, match=told):
            check("gates-all-l1", *lacking)


def test_gates_from_random_weights_have_a_control_of_their_own():
    run = read("scratch-gates-all-l0.3-from-none")
    assert (run.from_none, run.start) == (True, "random weights")
    assert label(run.control) == "gates-all-l0-from-none"
    assert label(run.gates_run) == "gates-all-l0.3-from-none"
    trained = read("gates-all-l0.3")
    assert (trained.from_none, trained.start, label(trained.control)) == (
        *(False, "baseline", "gates-all-l0"),
    )

    def check(*pruned: str, runs: str = "baseline") -> Experiment:
        given = {"pairs": ["c.en-de"], "runs": [runs], "pruned": list(pruned)}
        return Experiment.model_validate(given)

    entry = {"method": ["gates", "scratch"], "lambda": 0.3, "from": "none"}
    found = check("gates-all-l0-from-none", entry).pruned
    names = ["gates-all-l0-from-none", "gates-all-l0.3-from-none"]
    assert labels(found) == [*names, "scratch-gates-all-l0.3-from-none"]
    with pytest.raises(ValueError, match=r"needs its control 'gates-all-l0-from-none', trained"):
        check(entry)
    with pytest.raises(ValueError, match=r"needs the run 'baseline', which begins with the same"):
        check(NONE, runs="random-4")
    with pytest.raises(ValueError, match=r"'scratch-gates-all-l0.3-from-none' needs the heads"):
        check("scratch-gates-all-l0.3-from-none")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "pruned: [gates-all-l0,\n  gates-al-l1]",
            r"x\.yaml:3: pruned\[1\]: scope: expected enc_self or all",
        ),
        (
            "pruned: [gates-all-l-1]",
            r"x\.yaml:2: pruned\[0\]: lambda: expected a number",
        ),
        ("pruned: [drawn-gates-all-l1]", r"x\.yaml:2: pruned: 'drawn-gates-all-l1' needs the"),
        ("pruned: [gates-all-l1]\nruns: [impt-4]", r"x\.yaml:2: pruned: .* starts from .*'baselin"),
        ("pruned: [gates-all-l1, gates-all-l1.0]", r"pruned: 'gates-all-l1' is listed twice"),
        ("gates: {stretch_high: 1.0}", r"gates\.stretch_high: .* more than 1, found 1\.0"),
        ("gates: {init: half}", r"gates\.init: expected a number or glorot, found 'half'"),
        ("gates: {preset: papr}", r"gates\.preset: expected default or paper, found 'papr'"),
        (
            "pruned: [gates-all-l0]\ntrain: {patience: 5}",
            r"train\.patience: expected 0 beside `pruned`, .* 'gates-all-l0', found 5; pruned",
        ),
        ("gates: {updates: 50}", r"gates: warmup_updates 100 is more than updates 50, so the"),
    ],
)
def test_an_experiment_refuses_it_at_its_line(tmp_path, text, told):
    (tmp_path / "x.yaml").write_text(f"pairs: [synthetic.en-art]\n{text}")
    with pytest.raises(UserError, match=told):
        load_experiment("x", tmp_path)


def test_an_experiment_lists_pruned_runs_by_their_path_names(tmp_path):
    (tmp_path / "x.yaml").write_text(
        "pairs: [synthetic.en-art]\nruns: [impt-12.5%, baseline]\n"
        "pruned: [gates-all-l0.10, ranked-gates-all-l0.1, gates-all-l0,\n"
        "  gates-all-l0-from-impt-18]\n"
        "gates: {preset: paper, lr: 0.2}\n"
    )
    found = load_experiment("x", tmp_path)  # the base model has 144 heads
    names = ["gates-all-l0.1", "ranked-gates-all-l0.1", "gates-all-l0", "gates-all-l0-from-impt-18"]
    assert labels(found.pruned) == names
    assert (found.gates.init, found.gates.lr, found.gates.warmup_updates) == ("glorot", 0.2, 16000)


@pytest.mark.parametrize("text", ["gates-all-l0.1", "scratch-gates-all-l0.1", "subset-all-k8"])
def test_a_start_keeps_the_dropout_that_its_model_has(text):
    """The experiment's models have another, so that its name says which run it is."""
    model = MODEL.with_dropout(0.2)
    run = read_run_flag(f"{text}-from-baseline-d0.2", PrunedSettings, model)
    assert label(run) == f"{text}-from-baseline-d0.2"
    assert run.start == "baseline-d0.2"
    assert label(run.control) == "gates-all-l0-from-baseline-d0.2"
    shares = read_run_flag(f"{text}-from-random-12.5%-d0.2", PrunedSettings, model)
    assert label(shares) == f"{text}-from-random-7-d0.2"  # of 52, 6.5 is rounded up
