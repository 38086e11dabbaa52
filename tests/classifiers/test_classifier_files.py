"""Where a classifier comes from: nothing of it is run, and what was read is known."""

import io
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from script_runner import run_script
from small_bert import save_bert

from headcount.base.errors import EnvironmentFault, UserError
from headcount.model import machine
from headcount_hf.classifiers.classifier_files import fetch_classifier, read_classifier
from headcount_hf.pretrained.library import input_files

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Trap:
    """Pickled, it makes a file when it is loaded."""

    def __init__(self, canary):
        self.canary = canary

    def __reduce__(self):
        return (open, (str(self.canary), "w"))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bert").mkdir()
    return save_bert(tmp_path / "bert")


def test_x22_code_beside_a_model_is_never_run_and_nobody_is_asked(
    folder, tmp_path, monkeypatch, capsys
):
    canary = tmp_path / "canary"
    config = json.loads((folder / "config.json").read_text())
    own = {"AutoConfig": "own.OwnConfig", "AutoModelForSequenceClassification": "own.Own"}
    config |= {"model_type": "own", "auto_map": own}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"open({str(canary)!r}, 'w')\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\ny\n"))
    told = rf"{folder}: expected a whole classifier and its tokeniser that need no code of"
    with pytest.raises(UserError, match=told):
        read_classifier(folder)
    assert sys.stdin.read() == "y\ny\n" and not canary.exists()
    assert "[y/N]" not in "".join(capsys.readouterr())


def test_x23_pickled_weights_are_refused_with_and_without_a_trap(folder, tmp_path):
    canary = tmp_path / "canary"
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    told = r"expected weights as \.safetensors, found none; pickled weights \(.*\) can run code"
    for content in (weights, {"w": Trap(canary)}):
        torch.save(content, folder / "pytorch_model.bin")
        with pytest.raises(UserError, match=told):
            read_classifier(folder)
    assert not canary.exists()


def test_x26_a_pickle_in_disguise_and_damaged_files_are_refused(folder, tmp_path):
    canary, path = tmp_path / "canary", folder / "model.safetensors"
    told = rf"{folder}/model\.safetensors: not a whole safetensors file"
    whole = path.read_bytes()
    for damaged in (pickle.dumps(Trap(canary)), b"", whole[:-9]):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=told):
            read_classifier(folder)
    path.write_bytes(whole)
    told = rf"{folder}: expected a whole classifier and its tokeniser"
    for name in ("tokenizer.json", "config.json"):
        text = (folder / name).read_text()
        (folder / name).write_text(text[:-5])
        with pytest.raises(UserError, match=told):
            read_classifier(folder)
        (folder / name).write_text(text)
    assert not canary.exists()


def test_weights_without_a_classifier_are_not_completed_by_chance(folder):
    weights = load_file(folder / "model.safetensors")
    rest = {name: tensor for name, tensor in weights.items() if "classifier" not in name}
    save_file(rest, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(UserError, match=r"the weights lack classifier\.bias, which the library"):
        read_classifier(folder)


@pytest.mark.parametrize(
    ("name", "commit", "told"),
    [
        ("some/model", None, "no folder here, and a model on the hub may change; .* found None"),
        ("some/model", "main", "expected the commit to take as --revision, 40 .*, found main"),
        ("some/model", "0123abc", "expected the commit to take as --revision, 40 .* found 0123abc"),
        ("/no/such/folder", COMMIT, "--model /no/such/folder: expected a folder, or a name on the"),
    ],
)
def test_x24_a_model_of_the_hub_is_taken_as_of_a_commit_only(name, commit, told):
    with pytest.raises(UserError, match=told):
        fetch_classifier(name, commit)


def test_x24_without_network_the_environment_is_at_fault(tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    told = r"--model some/model: could not be fetched from the hub \(.*\); look at the network and"
    with pytest.raises(EnvironmentFault, match=told):
        fetch_classifier("some/model", COMMIT)


def test_x24_nothing_need_have_loaded_the_hubs_faults_before(tmp_path):
    """In a process of its own: the library, which others of these tests import, loads them."""
    alone = {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path), "PATH": ""}
    alone["PYTHONPATH"] = str(Path(__file__).resolve().parents[2] / "src")
    lines = (
        "from headcount.base import command",
        "from headcount_hf.classifiers.classifier_files import fetch_classifier",
        f"command.run(lambda: fetch_classifier('some/model', '{COMMIT}'))",
    )
    words = [sys.executable, "-c", "\n".join(lines)]
    ended = subprocess.run(words, env=alone, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 3
    assert "--model some/model: could not be fetched from the hub (" in ended.stderr


def test_a_folder_has_one_version(folder):
    assert fetch_classifier(str(folder), None) == folder
    with pytest.raises(UserError, match="--revision: .* is a folder, which has one version"):
        fetch_classifier(str(folder), COMMIT)


def test_x24_files_that_are_read_are_in_the_provenance(folder):
    (folder / "own.py").write_text("")
    (folder / "notes.md").write_text("")
    found = [path.name for path in input_files(folder)]
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= set(found)
    assert not {"own.py", "notes.md"} & set(found)


def test_f34_the_command_refuses_pickles_with_exit_code_2(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(machine, "use_threads", torch.set_num_threads)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"sentence1": "w1", "sentence2": "w2", "gold_label": "entailment"}\n')
    flags = ["--model", folder, "--out", tmp_path / "out"]
    for name in ("dev", "matched", "mismatched"):
        flags += [f"--{name}", pairs]
    assert run_script("classifier_ablation", flags) == 2
    assert "pickled weights (.bin, .pt) can run code and are not" in capsys.readouterr().err
