"""A small Marian model of the Hugging Face library, imported and taken through both engines."""

import csv
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from project_copy import ProjectCopy, planned, ran
from shared_results import QUIET, leave_figures_empty
from small_marian import write_marian

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
runs: [baseline, {method: importance, heads: 6}]
"""
MEASURED = {"importance": 1, "relevance": 1, "roles": 1, "masking": 1}
SEEN = ("general", "headmask", "voita_roles", "atlas", "claims", "cost", "report")
JOBS = MEASURED | {"fetch_pretrained": 1, "synthetic": 1, "text": 3, "segment": 1, "trees": 1}
JOBS |= dict.fromkeys(SEEN, 1) | {"imported_run": 1, "voita_pruning": 1, "michel": 1}
JOBS |= {"gates": 2, "fine_tune": 1, "pruned_roles": 1, "untuned_masking": 1, "translate": 4}
JOBS |= {"links": 2, "alignment": 1, "pruned_alignment": 1}
JOBS |= {"bleu": 4, "loss_change": 1, "ablation": 1, "pruning_profile": 1}
TUNED_JOBS = {"text": 3, "segment": 1, "train": 2, "translate": 2, "bleu": 2, "headmask": 1}
TUNED_JOBS |= {"importance": 2, "masking": 2}
PAIR = "synthetic_tiny.en-art"


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
        *("config.json", "generation_config.json", "model.safetensors"),
        *("source.spm", "target.spm", "vocab.json"),
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
    (made / "config.json").touch()
    (made / "model.safetensors").touch()
    return made


@pytest.fixture
def import_of(plan_of) -> Callable:
    """Return a function that plans an experiment of an imported model."""
    return lambda experiment=SIZES, models=MODEL: plan_of(experiment, models=models)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("", "", "own/marian/config.json: expected a file of your own, found none"),
        ("own_small", "own_smal", "no model 'own_smal' in config/models.yaml; near"),
        ("synthetic_tiny.en-art", "iwslt15_en_vi.en-vi", "expected plain text for the imported"),
    ],
)
def test_what_no_job_could_import_is_refused_before_the_first(import_of, old, new, message):
    with pytest.raises(UserError, match=message):
        import_of(SIZES.replace(old, new))


def pinned(folder: Path) -> str:
    """Return the entry of a model with the checksums of its files."""
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    return MODEL + f"  files: {json.dumps(files)}\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [(name, f"files: expected {name}") for name in ("added_tokens.json", "tokenizer.json")]
    + [("model.safetensors", "own/marian/model.safetensors: expected SHA-256")],
)
def test_a_new_or_changed_file_of_a_pinned_model_is_refused(
    import_of, folder, tmp_path, name, message
):
    """A copy of the earlier files lies in data/raw, and would be used in silence."""
    models = pinned(folder)
    manifest = tmp_path / import_of(models=models).imported.manifests[0]
    manifest.parent.mkdir(parents=True)
    manifest.touch()
    import_of(models=models)
    (folder / name).write_bytes(b"other")
    with pytest.raises(UserError, match=message):
        import_of(models=models)


def test_segment_gets_the_models_names_of_languages(import_of, folder):
    coded = import_of(models=MODEL + "  codes: {art: deu_Latn, fr: fra_Latn}\n")
    assert coded.code_flags({"pair": PAIR})[4:] == ["--tgt-code", "deu_Latn"]
    plain = import_of()
    assert plain.code_flags({"pair": PAIR})[4:] == []
    assert plain.manifests == coded.manifests  # the files are the same


def test_files_of_a_folder_are_inputs_and_its_entry_names_its_place(import_of, folder):
    for name in ("source.spm", "pytorch_model.bin", "model.py"):
        (folder / name).touch()
    (source,) = import_of().imported.sources.values()
    assert source.own == [f"own/marian/{name}" for name in (*HERE, "source.spm")]  # no code
    (folder / "vocab.json").touch()
    assert import_of().imported.manifests[0] == source.manifest
