"""Outputs of a finished job: whole and placed again, or not believed."""

import os
import shutil
from pathlib import Path

import pytest
from damage import flip

from headcount.base import files
from headcount.store.finished import FinishedSet


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
