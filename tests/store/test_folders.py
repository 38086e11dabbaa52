"""Folders of models, segmented pairs and finished jobs: whole, or refused by name."""

import json
import os
import pickle
import re
import resource
import shutil
import signal
from pathlib import Path

import pytest
import torch
from damage import flip
from safetensors.torch import save_file
from small_models import TEXT, make_model

from headcount.base import files
from headcount.base.errors import UserError
from headcount.data.batches import ParallelText
from headcount.data.vocabulary import UNK, Vocabulary
from headcount.store.finished import FinishedSet
from headcount.store.model_folder import (
    ModelFolder,
    load_weights,
    save_weights,
)
from headcount.store.pair_folder import PairFolder
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
    with pytest.raises(UserError, match=f"{name}: "):
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
        with pytest.raises(OSError, match="File too large") as told:
            save_weights(path, {"a": torch.ones(100_000)})  # 4 bytes each
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)
    assert told.value.filename == str(path) and path.read_bytes() == old
    assert [found.name for found in tmp_path.iterdir()] == ["w.safetensors"]


@pytest.fixture
def pair(tmp_path):
    """Writes both sides of `dev`, whose pieces are known; returns the folder."""
    Vocabulary([("lo@@", 3), ("w", 2), ("w\u2028", 1)]).save(tmp_path / "src.vocab")
    Vocabulary([("a", 2), ("b", 1)]).save(tmp_path / "tgt.vocab")

    def written(src, tgt):
        (tmp_path / "dev.src").write_bytes(src.encode())
        (tmp_path / "dev.tgt").write_bytes(tgt.encode())
        return PairFolder(tmp_path)

    return written


def test_reading_both_sides(pair):
    text = pair("lo@@ w\n\nw\u2028 x\n", "b\na\nb a\n").read("dev")
    assert text == ParallelText([[4, 5], [], [6, UNK]], [[5], [4], [5, 4]])
    assert len(text) == 3


def test_f17_sides_of_unequal_length_are_refused(pair):
    with pytest.raises(UserError, match=r"dev\.src has 3 lines, .*dev\.tgt has 2; make them again"):
        pair("w\nw\nw\n", "a\na\n").read("dev")


def test_first_pairs_are_those_whose_source_has_a_word(pair):
    folder = pair("\nw\nw w\nw\n", "a a\n\na\na\n")
    assert folder.first_pairs("dev", 2) == ParallelText([[5], [5, 5]], [[], [4]])
    assert len(folder.first_pairs("dev", None)) == 3
    with pytest.raises(UserError, match=r"dev\.src: expected sentences, found none with a word"):
        pair("\n\n\n\n", "a a\n\na\na\n").first_pairs("dev", 2)


def make(folder: Path) -> FinishedSet:
    found = FinishedSet(folder / "state" / "finished")
    with found.written(folder / "out") as part:
        (part / "model").mkdir()
        (part / "model" / "weights").write_bytes(b"0123")
        (part / "curves.csv").write_bytes(b"step\n1\n")
    return found


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


OUTPUTS = {"model/weights": b"0123", "curves.csv": b"step\n1\n"}


def test_outputs_are_placed_as_new_files(tmp_path):
    found = make(tmp_path)
    assert found.is_whole()
    assert sorted(map(str, found.outputs())) == sorted(
        str(tmp_path / "out" / name) for name in OUTPUTS
    )
    for path in found.folder.rglob("*"):
        os.utime(path, (1, 1))
    for _ in range(2):  # the second time they are there already
        found.place(tmp_path / "out")
        assert contents(tmp_path / "out") == OUTPUTS
        assert all(path.stat().st_mtime > 1e9 for path in (tmp_path / "out").rglob("*"))
    (tmp_path / "out" / "curves.csv").unlink()  # as Snakemake deletes outputs before a job
    assert found.is_whole()


def test_without_hard_links_outputs_are_copied(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError("this disk has no hard links")

    found = make(tmp_path)
    monkeypatch.setattr(files.os, "link", refuse)
    found.place(tmp_path / "out")
    assert contents(tmp_path / "out") == OUTPUTS
    assert not (tmp_path / "out" / "curves.csv").samefile(found.folder / "curves.csv")


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: flip(folder / "model" / "weights", 0),
        lambda folder: (folder / "curves.csv").unlink(),
        lambda folder: (folder / "manifest.json").unlink(),
        lambda folder: (folder / "manifest.json").write_text("[]"),
        lambda folder: (folder / "manifest.json").write_text('{"out": "x"'),
        lambda folder: shutil.rmtree(folder),
    ],
)
def test_f33_a_damaged_set_is_not_believed_and_made_anew(tmp_path, damage):
    found = make(tmp_path)
    damage(found.folder)
    assert not found.is_whole()
    assert make(tmp_path).is_whole()


def test_a_set_that_cannot_be_finished_leaves_nothing(tmp_path):
    found = FinishedSet(tmp_path / "finished")
    with pytest.raises(OSError, match="no space"), found.written(tmp_path / "out") as part:
        (part / "weights").write_bytes(b"01")
        raise OSError("no space")
    assert list(tmp_path.iterdir()) == []
