"""Runs: names and settings, counts on a model, lists in an experiment, and run.json."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from named_runs import RUNS

from headcount.base.errors import UserError
from headcount.base.settings.experiment import Experiment
from headcount.base.settings.flags import read_run_flag, run_as_flag
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.reader import read_value
from headcount.base.settings.runs import PrunedSettings, labels, read_run, write_run
from headcount.base.settings.training_runs import RunSettings

CONFIG = Path(__file__).parents[2] / "config"
KINDS = ("enc_self", "dec_self", "dec_enc")
SMALL = ModelSettings(preset="small")  # 9 layers of 4 heads, d_model 256, dropout 0.1

shares = st.integers(1, 9999).map(lambda n: n / 10000)
counts = st.integers(0, 40)
dropouts = st.none() | st.integers(0, 9999).map(lambda n: n / 10000)
trained = st.builds(
    RunSettings,
    method=st.just("baseline"),
    attention_heads=st.none() | st.integers(1, 64),
    dropout=dropouts,
) | st.builds(
    RunSettings,
    method=st.just("random"),
    heads=counts,
    dropout=dropouts,
    cooldown_updates=counts,
    start_update=counts,
)
family = {
    "rescale": st.sampled_from([None, "none", "layer"]),
    "draw": st.sampled_from([None, "update", "sentence"]),
    "schedule": st.sampled_from([None, "constant", "linear", "v"]),
}
layers = st.sampled_from([None, "layer"])
trained |= st.builds(RunSettings, method=st.just("random"), heads=counts, scope=layers, **family)
trained |= st.builds(
    RunSettings, method=st.just("drophead"), head_probability=shares, dropout=dropouts, **family
)
importance = {
    "method": st.just("importance"),
    "heads": counts,
    "dropout": dropouts,
    "probability": shares,
    "decay": shares,
    "exclude_kind": st.none() | st.sampled_from(KINDS),
    "start_update": counts,
}
units = st.sampled_from(["sentence", "batch", "position", "token"])
trained |= st.builds(RunSettings, **importance, signed=st.booleans(), cooldown_updates=counts)
trained |= st.builds(RunSettings, **importance, unit=units, warmup_mask_updates=counts)
scopes = st.sampled_from(["enc_self", "all"])


def _pruned(method: str, scope: str, size: float, start: RunSettings | str) -> PrunedSettings:
    key = {"heads": int(size) + 1} if method == "subset" else {"lambda": size}
    return PrunedSettings(method=method, scope=scope, **key, **{"from": start})


starts = trained.filter(lambda run: run.attention_heads is None)
lambdas = st.integers(0, 10**9).map(lambda n: n / 10**9) | st.integers(1, 999).map(float)
pruned = st.builds(
    _pruned,
    st.sampled_from(["gates", "scratch", "importance", "random", "subset"]),
    scopes,
    lambdas,
    starts,
) | st.builds(_pruned, st.sampled_from(["gates", "scratch"]), scopes, lambdas, st.just("none"))


@given(trained | pruned)
def test_labels_are_safe_in_paths_and_commands(run):
    assert re.fullmatch(r"[a-z0-9._-]+", run.label)


KEYS = {"dropout": 0.5, "cooldown_updates": 4, "start_update": 7, "probability": 0.25}
KEYS |= {"signed": True, "decay": 0.9, "exclude_kind": "dec_self"}
LABEL = "impt-6-p0.25-signed-ema0.9-spare_dec_self-rest4-after7-d0.5"


def test_a_label_has_all_keys_in_one_order():
    run = RunSettings(**KEYS, heads=6, method="importance")
    assert run.label == LABEL and run.way == LABEL.replace("-6", "").removesuffix("-d0.5")
    held = RunSettings(method="importance", heads=6, unit="token", warmup_mask_updates=9)
    assert held.label == "impt-6-token-held9"
    pruned = {"method": "scratch", "lambda": 1e-6, "from": run}
    assert PrunedSettings(**pruned).label == f"scratch-gates-all-l0.000001-from-{LABEL}"


@given(trained | pruned)
def test_a_flag_gives_the_settings_back(run):
    flag = run_as_flag(run)
    assert (
        type(run).model_validate(read_value(flag, "--run")) == run == type(run)(**json.loads(flag))
    )


@given(trained | pruned)
def test_run_json_gives_the_settings_back(tmp_path_factory, run):
    folder = tmp_path_factory.getbasetemp()
    write_run(folder, run)
    assert read_run(folder / "run.json") == run
    assert json.loads((folder / "run.json").read_text())["run"] == run.label


def test_runs_of_older_versions_stay_readable(tmp_path):
    run = RunSettings(method="importance", heads=6)
    write_run(tmp_path, run)
    path = tmp_path / "run.json"
    older = path.read_text().replace('"signed"', '"centred": false, "signed"')
    path.write_text(older)
    assert read_run(path) == run
    path.write_text(older.replace('"centred": false', '"centred": true'))
    with pytest.raises(UserError, match=r"run\.json: centred: "):
        read_run(path)


@pytest.mark.parametrize(
    ("share", "heads", "count"),
    [("12.5%", 48, 6), ("12.5%", 144, 18), ("10%", 24, 2), ("11%", 24, 3), ("12.4999%", 20, 2)]
    # Halves go up; nothing but 0 % is no head.
    + [("12.5%", 20, 3), ("0.1%", 48, 1), ("0%", 48, 0), ("100%", 17, 17)],
)
def test_a_share_is_the_nearest_count(share, heads, count):
    grid = {"enc_self": [heads], "dec_self": [0], "dec_enc": [0]}
    model = ModelSettings(encoder_layers=1, decoder_layers=1, heads=grid, d_head=8)
    run = read_run_flag(f"{{method: random, share: {share}}}", RunSettings, model)
    assert run == RunSettings(method="random", heads=count)


@pytest.mark.parametrize(
    ("given", "label"),
    [
        ({"method": "random", "heads": 6, "rescale": "none", "draw": "update"}, "random-6"),
        ({"method": "random", "share": "50%", "scope": "layer"}, "random-2-layer"),  # of 4 heads
        (
            {"method": "random", "heads": 6, "rescale": "layer", "schedule": "linear"},
            "random-6-rescaled-linear",
        ),
        (
            {"method": "drophead", "head_probability": 0.2, "draw": "sentence", "schedule": "v"},
            "drophead-0.2",
        ),
        ({"method": "drophead", "head_probability": 0, "rescale": "none"}, "drophead-0-unscaled"),
    ],
)
def test_keys_that_the_method_has_anyway_are_left_out(given, label):
    run = RunSettings(**given).counted(SMALL)
    assert run.label == label
    assert not {"none", "update"} & {*run.model_dump(exclude_none=True).values()} or "un" in label


@pytest.mark.parametrize(
    ("run", "most"),
    # 36 heads; 24 outside decoder self-attention; as many again for each update of rest.
    [
        ("method: random", 36),
        ("method: importance, exclude_kind: dec_self", 24),
        ("method: importance, cooldown_updates: 2", 12),
        ("method: importance, exclude_kind: dec_self, cooldown_updates: 2", 8),
    ],
)
def test_no_more_heads_are_masked_than_may_be(run, most):
    assert read_run_flag(f"{{{run}, heads: {most}}}", RunSettings, SMALL).heads == most
    with pytest.raises(UserError, match=f"--run: .* {most} "):
        read_run_flag(f"{{{run}, heads: {most + 1}}}", RunSettings, SMALL)


def test_a_run_has_a_model_of_its_own_heads_and_dropout():
    for heads, width in ((1, 256), (2, 128), (8, 32)):
        own = RunSettings(method="baseline", attention_heads=heads).own_model(SMALL)
        assert own.grid.counts == dict.fromkeys(KINDS, (heads,) * 3) and own.head_width == width
    run = RunSettings(method="random", heads=7, dropout=0.3)
    for attention, then in ((0.0, 0.0), (0.1, 0.3)):
        own = run.own_model(SMALL.model_copy(update={"attention_dropout": attention}))
        assert (own.dropout, own.attention_dropout) == (0.3, then)
    flag = "{method: baseline, attention_heads: 4, dropout: 0.1}"  # the model's own
    assert read_run_flag(flag, RunSettings, SMALL) == read_run_flag("baseline", RunSettings, SMALL)


def test_a_start_keeps_the_dropout_that_its_model_has():
    model = SMALL.model_copy(update={"dropout": 0.2})
    start = "from: {method: random, share: 12.5%, dropout: 0.2}"
    for keys, name in (
        ("method: gates, lambda: 0.1", "gates-all-l0.1"),
        ("method: scratch, lambda: 0.1", "scratch-gates-all-l0.1"),
        ("method: subset, heads: 8", "subset-all-k8"),
    ):
        run = read_run_flag(f"{{{keys}, {start}}}", PrunedSettings, model)
        assert run.label == f"{name}-from-random-5-d0.2" and run.start == "random-5-d0.2"
        assert run.control.label == "gates-all-l0-from-random-5-d0.2"


@pytest.mark.parametrize("text", ["random-6", "{method: random", "[]", "6", "{method: drawn}"])
def test_a_flag_without_settings_of_a_run_is_refused(text):
    with pytest.raises(UserError, match="^--run: "):
        read_run_flag(text, RunSettings, SMALL)


def test_a_pruned_run_names_what_it_is_compared_with():
    run = RUNS["scratch-gates-enc_self-l0.3-from-none"]
    assert (run.from_none, run.start, run.kinds) == (True, "random weights", ("enc_self",))
    assert labels([run.gates_run, run.control]) == [
        *("gates-enc_self-l0.3-from-none", "gates-enc_self-l0-from-none")
    ]


def test_lists_in_a_mapping_stand_for_runs_in_their_order():
    runs = ["baseline", {"share": ["25%", "50%"], "method": ["random", "importance"]}]
    starts = ["baseline", {"method": ["importance", "random"], "share": "25%"}]
    entry = {"method": "gates", "from": starts, "lambda": [0, 1e-6]}
    given = {
        "pairs": ["a.b-c"],
        "model": {"preset": "small"},
        "ablation": {"runs": ["random-9"]},
    }
    found = Experiment(**given, runs=runs, pruned=[entry])
    assert labels(found.runs) == ["baseline", "random-9", "impt-9", "random-18", "impt-18"]
    after = ("", "-from-impt-9", "-from-random-9")
    assert labels(found.pruned) == [
        f"gates-all-l{n}{end}" for end in after for n in ("0", "0.000001")
    ]
