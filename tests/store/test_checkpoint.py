"""Damaged, foreign and half-written files are refused by name."""

import json
import pickle
import re
import resource
import signal

import pytest
import torch
from damage import flip
from safetensors.torch import save_file
from small_models import TEXT, make_model

from headcount.base.errors import UserError
from headcount.base.files import NoRoom
from headcount.store.model_folder import (
    ModelFolder,
    load_weights,
    save_weights,
)
from headcount.training.score import score_targets


@pytest.fixture
def folder(tmp_path):
    """A saved model, with weights of another update beside it."""
    model = make_model()
    save_weights(tmp_path / "last.safetensors", dict(model.named_parameters()))
    ModelFolder(tmp_path).save(model, dict(model.named_parameters()), {"parameters": 1})
    return tmp_path


def rewrite(folder, **facts):
    path = folder / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **facts}))


def test_saved_and_loaded(folder):
    expected = score_targets(make_model(), TEXT, 20)
    for name in ("weights.safetensors", "last.safetensors"):
        model = ModelFolder(folder).load(weights=name)
        assert not model.training
        assert torch.equal(score_targets(model, TEXT, 20), expected)
    assert json.loads((folder / "model.json").read_text())["parameters"] == 1


@pytest.mark.parametrize("length", [0, 5, 100, -1])
def test_f33_truncated_weights(folder, length):
    path = folder / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(UserError, match=r"weights\.safetensors: "):
        ModelFolder(folder).load()


@pytest.mark.parametrize("name", ["weights.safetensors", "last.safetensors"])
@pytest.mark.parametrize("place", [-1, -3000])
def test_f33_one_bit_of_the_weights(folder, name, place):
    flip(folder / name, place)
    with pytest.raises(UserError, match=rf"{name}: damaged or changed"):
        ModelFolder(folder).load(weights=name)


def change_weights(folder, **changes):
    """Write other weights, with the checksum that belongs to them."""
    weights = {**load_weights(folder / "weights.safetensors"), **changes}
    kept = {name: tensor for name, tensor in weights.items() if tensor is not None}
    save_file(kept, folder / "weights.safetensors")
    rewrite(folder, sha256={})


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"encoder_norm.bias": None}, "encoder_norm.bias"),
        ({"encoder.9.x": torch.zeros(1)}, "encoder.9.x"),
        ({"decoder_norm.bias": torch.zeros(12)}, "decoder_norm.bias has shape [12]"),
    ],
)
def test_f33_weights_of_another_model(folder, changes, name):
    change_weights(folder, **changes)
    with pytest.raises(UserError, match=re.escape(name)):
        ModelFolder(folder).load()


@pytest.mark.parametrize("name", ["weights.safetensors", "model.json"])
def test_a_missing_file(folder, name):
    (folder / name).unlink()
    with pytest.raises(UserError, match=rf"{name}: expected .*, found none"):
        ModelFolder(folder).load()


class Trap:
    """Pickled, it makes a file when it is loaded."""

    def __init__(self, canary):
        self.canary = canary

    def __reduce__(self):
        return (open, (str(self.canary), "w"))


def test_f34_a_pickle_in_disguise_is_never_run(folder, tmp_path):
    trap = {"encoder_norm.bias": Trap(tmp_path / "canary")}
    path = folder / "weights.safetensors"
    rewrite(folder, sha256={})
    for disguise in (lambda: path.write_bytes(pickle.dumps(trap)), lambda: torch.save(trap, path)):
        disguise()
        with pytest.raises(UserError, match="not a whole safetensors file"):
            ModelFolder(folder).load()
    assert not (tmp_path / "canary").exists()


def test_f32_a_full_disk_leaves_the_old_file_and_says_what_it_needs(tmp_path):
    """A limit on file size stands in for the full disk: the write fails halfway."""
    path = tmp_path / "w.safetensors"
    save_weights(path, {"a": torch.ones(2)})
    old = path.read_bytes()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limit[1]))
    try:
        with pytest.raises(NoRoom, match="File too large: it needs 400,000 bytes") as told:
            save_weights(path, {"a": torch.ones(100_000)})  # 4 bytes each
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)
    assert told.value.filename == str(path) and path.read_bytes() == old
    assert [found.name for found in tmp_path.iterdir()] == ["w.safetensors"]
