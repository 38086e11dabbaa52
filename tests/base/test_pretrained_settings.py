"""Models of others in models.yaml, and an experiment whose model is one of them."""

import pytest

from headcount.base.errors import UserError
from headcount.base.settings.experiment import Experiment, load_experiment
from headcount.base.settings.flags import as_flags
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.pretrained import load_models

COMMIT, SHA256 = "0a" * 20, "1b" * 32
HUB = f"hub: a/b, revision: {COMMIT}"
FILES = f"files: {{config.json: {SHA256}, model.safetensors: {SHA256}}}"
IMPORTED = {
    "pairs": ["multi30k.en-de"],
    "text": {"normal_form": "none"},
    "model": {"imported": "opus", "preset": "small"},
}


def models(folder, origin: str):
    path = folder / "models.yaml"
    path.write_text(f"opus: {{licence: a, citation: b, {origin}}}\n")
    return load_models(path)


def test_a_model_of_the_hub_and_one_of_ones_own(tmp_path):
    found = models(tmp_path, f"{HUB}, {FILES}")["opus"]
    assert found.files["model.safetensors"] == SHA256
    assert models(tmp_path, "path: models/mine")["opus"].files == {}


@pytest.mark.parametrize(
    ("origin", "told"),
    [
        (f"hub: a/b, revision: main, {FILES}", "expected a whole commit, 40 digits .* 'main'"),
        (f"hub: a/b, {FILES}", "expected hub and revision, or path"),
        (f"{HUB}, path: own, {FILES}", "expected hub and revision, or path"),
        (HUB, "files: expected model.safetensors among them, found none"),
        (f"{HUB}, files: {{config.json: {SHA256}}}", "among them, found config.json"),
        (f"{HUB}, files: {{pytorch_model.bin: {SHA256}}}", "bin: expected weights as model.safe"),
        (f"{HUB}, files: {{model.safetensors: null}}", "expected its SHA-256, found none"),
        (f"{HUB}, files: {{model.safetensors: 1b}}", "expected 64 hexadecimal digits"),
        (f"{HUB}, files: {{../model.safetensors: {SHA256}}}", "the first neither . nor -"),
    ],
)
def test_what_could_be_other_weights_tomorrow_or_run_code_is_refused(tmp_path, origin, told):
    with pytest.raises(UserError, match=told):
        models(tmp_path, origin)


def test_scripts_are_told_sizes_alone_as_of_any_other_model():
    given = Experiment(**IMPORTED)
    assert given.model.as_it_is and not Experiment(pairs=["a.b-c"]).model.as_it_is
    assert as_flags(given.section("model")) == as_flags(ModelSettings(preset="small"))
    assert given.section("train") is given.train


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"text": {}}, "text.normal_form: expected none with the imported model opus.*found NFC"),
        ({"bpe": {"merges": 100}}, "bpe.merges: its subwords are used .* leave it out"),
        ({"runs": ["baseline", "impt-6"]}, "'impt-6' .* and the baseline not, .*fine_tune: true"),
        ({"runs": ["baseline", "baseline-h2"]}, "'baseline-h2' .* from random ones to compare"),
        (
            {"pruned": [{"method": "gates", "lambda": [0, 0.1], "from": "none"}]},
            "'gates-all-l0-from-none' .* expected runs that start from its weights",
        ),
        (
            {"seeds": [1, 2, 3]},
            "seeds: expected one with the imported model opus, .* same for each, found 3; .*gates",
        ),
        ({"importance": {"loss": "smoothed"}}, "importance.loss: expected nll .* found smoothed"),
        (
            {"ablation": {"runs": ["baseline"], "updates": [5]}, "train": {"keep_updates": [5]}},
            "ablation.updates: nothing is trained with the imported model opus",
        ),
        ({"model": {"fine_tune": True}}, "fine_tune: goes with imported"),
    ],
)
def test_what_an_imported_model_leaves_no_choice_in(changed, told):
    with pytest.raises(ValueError, match=told):
        Experiment(**(IMPORTED | changed))


def test_fine_tuned_runs_are_compared_with_a_fine_tuned_baseline():
    model = IMPORTED["model"] | {"fine_tune": True}
    runs = ["baseline", "random-6", "impt-6"]
    given = Experiment(**(IMPORTED | {"model": model, "runs": runs, "seeds": [1, 2]}))
    assert not given.model.as_it_is and len(given.runs) == 3 and given.seeds == [1, 2]


def test_the_file_of_models_is_no_experiment(tmp_path):
    (tmp_path / "models.yaml").write_text("{}")
    with pytest.raises(UserError, match="experiment 'models': there is no"):
        load_experiment("models", tmp_path)
