"""A small Marian model of the Hugging Face library, imported and taken through both engines."""

import csv
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from project_copy import ROOT, ProjectCopy, planned, ran
from shared_results import QUIET, leave_figures_empty
from small_marian import write_marian
from workflow_modules import load

from headcount.base.errors import UserError
from headcount.data.synthetic.corpus import generate_splits
from headcount.store.model_folder import load_weights

MODEL = """
own_small:
  licence: made here
  citation: this project
  path: own/marian
"""
SIZES = """
pairs: [synthetic_tiny.en-art]
text: {normal_form: none}
model:
  imported: own_small
  encoder_layers: 2
  decoder_layers: 2
  d_model: 32
  d_ff: 48
  heads: 4
  norm: post
  norm_epsilon: 1e-5
  activation: silu
  output_bias: true
  dropout: 0.0
train: {updates: 20, warmup_updates: 5, batch_tokens: 400, dev_interval: 10}
decode: {beam: 1, max_length_factor: 0.1, max_length_extra: 5}
importance: {sentences: 40}
masking: {groups: 5, draws: 1, sentences: 5}
roles: {sentences: 20}
lrp: {max_sentences: 2}
"""
AS_IT_IS = """
title: A small Marian model
pruned:
  - {method: gates, lambda: [0, 0.3]}
  - {method: importance, lambda: 0.3}
ablation: {runs: [baseline], sentences: 5, steps: 3, draws: 1}
gates: {updates: 10, warmup_updates: 2, dev_interval: 5}
"""
TUNED = """
title: The same, fine-tuned
runs: [baseline, impt-6]
"""
MEASURED = {"importance": 1, "relevance": 1, "roles": 1, "masking": 1}
SEEN = ("general", "headmask", "voita_roles", "atlas", "claims", "cost", "report")
JOBS = MEASURED | {"fetch_pretrained": 1, "synthetic": 1, "text": 3, "segment": 1, "trees": 1}
JOBS |= dict.fromkeys(SEEN, 1) | {"imported_run": 1, "voita_pruning": 1, "michel": 1}
JOBS |= {"gates": 2, "fine_tune": 1, "pruned_roles": 1, "untuned_masking": 1, "translate": 4}
JOBS |= {"bleu": 4, "loss_change": 1, "ablation": 1, "pruning_profile": 1}
TUNED_JOBS = {"text": 3, "segment": 1, "train": 2, "translate": 2, "bleu": 2, "headmask": 1}
TUNED_JOBS |= {"importance": 2, "masking": 2}
PAIR = "synthetic_tiny.en-art"
CONFIG = {
    **{"model_type": "marian", "activation_function": "swish", "vocab_size": 300},
    **{"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "max_position_embeddings": 64},
    **{"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48},
    **{"decoder_ffn_dim": 48, "pad_token_id": 299, "eos_token_id": 0},
    **{"decoder_start_token_id": 299, "scale_embedding": True},
}
"""Of a model as `SIZES` has it."""


@pytest.fixture
def copy(tmp_path) -> ProjectCopy:
    """A project with one model of one's own, and an experiment of each way to take it."""
    made = ProjectCopy(tmp_path / "copy")
    own = made.folder / "own"
    own.mkdir()
    train = generate_splits(3, 300, 1, 1)["train"]
    texts = own / "en.txt", own / "art.txt"
    for path, side in zip(texts, ("source", "target"), strict=True):
        path.write_text("".join(" ".join(getattr(pair, side)) + "\n" for pair in train))
    write_marian(own / "marian", texts)
    models = made.folder / "config" / "models.yaml"
    models.write_text(models.read_text() + MODEL)
    (made.folder / "config" / "small.yaml").write_text(AS_IT_IS + SIZES)
    tuned = SIZES.replace("own_small", "own_small\n  fine_tune: true")
    (made.folder / "config" / "tuned.yaml").write_text(TUNED + tuned)
    made.change("dvc.yaml", "experiments: [quickstart]", "experiments: [small]")
    leave_figures_empty(made)
    return made


@pytest.mark.slow
def test_an_imported_model_goes_from_files_to_report_by_both_engines(copy):
    code, output = copy.run("-n", "--config", "experiment=small")
    assert code == 0 and planned(output) == JOBS, output
    copy.call("git", "init", "-q", "-b", "main")
    copy.commit()
    assert ran(copy.call("dvc", "repro")) == JOBS
    code, output = copy.run("-n", "--config", "experiment=small")
    assert code == 0 and QUIET in output, output
    _check_as_it_is(copy.folder / "results" / "small")
    assert ran(copy.call("dvc", "repro")) == {}
    tuned = ("results/tuned/tables/headmask_table2.csv", "--config", "experiment=tuned")
    code, output = copy.run(*tuned)
    assert code == 0 and ran(output) == TUNED_JOBS, output
    assert QUIET in copy.run("-n", *tuned)[1]
    _check_tuned(copy.folder / "results")
    shutil.rmtree(copy.folder / "data" / "raw")  # as after `dvc pull`, by who has no model here
    shutil.rmtree(copy.folder / "own")
    code, output = copy.run("-n", "--config", "experiment=small")
    assert code == 0 and QUIET in output and "own/marian/config.json: expected a file" in output


def _check_as_it_is(results: Path) -> None:
    """Nothing was trained; the library says the same; words are aligned with trees."""
    run = results / "train" / PAIR / "baseline" / "seed1"
    (row,) = csv.DictReader((run / "curves.csv").open())
    assert (row["step"], row["train_loss"]) == ("0", "") and float(row["dev_loss"]) > 0
    about = json.loads((run / "import.json").read_text())
    assert about["model"] == "own/marian" and about["revision"] is None
    assert set(about["files"]) == {
        *("config.json", "model.safetensors", "source.spm", "target.spm", "vocab.json"),
        "generation_config.json",
    }
    assert about["check"]["pairs"] == 8
    assert about["check"]["largest_gap"] <= 1e-5 * about["check"]["largest_score"]
    syntax = list(csv.DictReader((results / f"heads/{PAIR}/baseline/seed1/syntax.csv").open()))
    assert {row["treebank"] for row in syntax} == {"synthetic_tiny.test"}
    setting = "Model: own_small, imported, without training: 2 encoder and 2 decoder layers"
    page = (results / "report.html").read_text()
    assert setting in page
    assert "Data and scores" in page and "does training with masked heads help" not in page
    made = {path.stem for name in ("tables", "figures") for path in (results / name).iterdir()}
    assert {"bleu", "headmask_fig1"} <= made
    assert not made & {"curves", "headmask_table2", "headmask_frequency", "voita_fig2"}
    assert "headmask_collapse" not in made
    assert "<script" in (results / "atlas.html").read_text()


def _check_tuned(results: Path) -> None:
    """The baseline began with the imported weights, and is another model by now."""
    weights = f"train/{PAIR}/baseline/seed1/model/weights.safetensors"
    given, tuned = (load_weights(results / name / weights) for name in ("small", "tuned"))
    moved = {name for name in given if not given[name].equal(tuned[name])}
    assert "output_bias" not in moved and "tgt_embedding.weight" in moved
    near = max(float((given[name] - tuned[name]).abs().max()) for name in given)
    # Adam moves a weight by at most its rate: 20 updates of at most 7e-4 are 0.014 at the most.
    assert 0 < near <= 0.014
    log = (results / f"tuned/logs/train/{PAIR}.baseline.seed1.log").read_text()
    assert "'largest_gap': " in log and "'pairs': 8" in log
    rows = list(csv.DictReader((results / "tuned/tables/headmask_table2.csv").open()))
    ours = {(row["run"], row["statistic"]) for row in rows if row["source"] == "ours"}
    assert {("baseline", "bleu"), ("impt-6", "bleu"), ("impt-6", "delta")} <= ours


HERE = ("config.json", "model.safetensors")


@pytest.fixture
def folder(tmp_path) -> Path:
    """The folder of a model of one's own, whose weights are empty."""
    made = tmp_path / "own" / "marian"
    made.mkdir(parents=True)
    (made / "config.json").write_text(json.dumps(CONFIG))
    (made / "model.safetensors").touch()
    return made


@pytest.fixture
def plan_of(monkeypatch, tmp_path):
    """Plans an experiment in a folder with settings alone."""
    module = load(monkeypatch, "plan.plan")
    (tmp_path / "config").mkdir()
    shutil.copy(ROOT / "config" / "corpora.yaml", tmp_path / "config")
    monkeypatch.chdir(tmp_path)

    def read(experiment: str = SIZES, models: str = MODEL):
        (tmp_path / "config" / "own.yaml").write_text(experiment)
        (tmp_path / "config" / "models.yaml").write_text(models)
        return module.Plan("own")

    return read


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("", "", "own/marian/config.json: expected a file of your own, found none"),
        ("own_small", "own_smal", "no model 'own_smal' in config/models.yaml; near"),
        ("synthetic_tiny.en-art", "iwslt15_en_vi.en-vi", "expected plain text for the imported"),
    ],
)
def test_what_no_job_could_import_is_refused_before_the_first(plan_of, old, new, message):
    with pytest.raises(UserError, match=message):
        plan_of(SIZES.replace(old, new))


def test_a_model_of_another_direction_is_refused_by_the_plan(plan_of, folder):
    about = folder / "tokenizer_config.json"
    about.write_text('{"source_lang": "de", "target_lang": "en"}')
    with pytest.raises(UserError, match="source_lang"):
        plan_of()
    about.write_text('{"source_lang": "eng", "target_lang": "roa"}')
    plan_of()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder_attention_heads": 8, "decoder_attention_heads": 8}, "heads: 8, found 4"),
        ({"encoder_ffn_dim": 64, "decoder_ffn_dim": 64}, "d_ff: 64, found 48"),
        ({"d_model": 30}, "config.json: encoder_attention_heads: "),
    ],
)
@pytest.mark.parametrize("fetched", [False, True])
def test_sizes_of_another_model_are_refused_by_the_plan(plan_of, folder, changes, message, fetched):
    """They stand in the folder of one's own, or in what was fetched."""
    hub = "  hub: a/b\n  revision: " + "a" * 40
    hub += '\n  files: {model.safetensors: "' + "0" * 64 + '"}\n'
    models = MODEL.replace("  path: own/marian\n", hub) if fetched else MODEL
    if fetched:
        manifest = Path(plan_of(models=models).imported.manifests[0])
        shutil.copytree(folder, manifest.parent)
        folder = manifest.parent
    (folder / "config.json").write_text(json.dumps(CONFIG | changes))
    with pytest.raises(UserError, match=message):
        plan_of(models=models)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    plan_of(models=models)


def pinned(folder: Path) -> str:
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    return MODEL + f"  files: {json.dumps(files)}\n"


@pytest.mark.parametrize("name", ["added_tokens.json", "tokenizer_config.json", "tokenizer.json"])
def test_a_file_of_the_tokenizer_without_a_pin_is_refused(plan_of, folder, name):
    """The copy would lack it, and text would be cut in another way than its makers do."""
    models = pinned(folder)
    plan_of(models=models)
    (folder / name).write_text("{}")
    with pytest.raises(UserError, match=f"files: expected {name}"):
        plan_of(models=models)


def test_a_pinned_model_of_ones_own_that_has_changed_ends_every_plan(plan_of, folder, tmp_path):
    """A copy of its earlier weights lies in data/raw; it would have been used in silence."""
    models = pinned(folder)
    manifest = tmp_path / plan_of(models=models).imported.manifests[0]
    manifest.parent.mkdir(parents=True)
    manifest.touch()
    plan_of(models=models)
    (folder / "model.safetensors").write_bytes(b"other")
    with pytest.raises(UserError, match="own/marian/model.safetensors: expected SHA-256"):
        plan_of(models=models)


def test_a_plan_of_an_imported_model_needs_no_torch():
    words = "import sys, headcount_hf.pretrained.families; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", words], check=True)


def test_no_job_waits_for_a_training_that_there_is_not(plan_of, folder):
    """The gates run has 10 updates, and the ranked one waits for it: 20 on the longest chain."""
    pruning = plan_of(AS_IT_IS + SIZES).pruning
    assert pruning.updates("baseline") == 0 and pruning.urgency({"run": "baseline"}) == 20


def test_segment_gets_the_models_names_of_languages(plan_of, folder):
    coded = plan_of(models=MODEL + "  codes: {art: deu_Latn, fr: fra_Latn}\n").imported
    assert coded.code_flags({"pair": PAIR}) == ["--tgt-code", "deu_Latn"]
    plain = plan_of().imported
    assert plain.code_flags({"pair": PAIR}) == []
    assert plain.manifests == coded.manifests  # the files are the same


def test_files_of_a_folder_are_inputs_and_its_entry_names_its_place(plan_of, folder):
    for name in ("source.spm", "pytorch_model.bin", "model.py"):
        (folder / name).touch()
    imported = plan_of().imported
    source = imported.source("own_small")
    assert source.own == [f"own/marian/{name}" for name in (*HERE, "source.spm")]  # no code
    (folder / "vocab.json").touch()
    assert imported.source("own_small").manifest == source.manifest
