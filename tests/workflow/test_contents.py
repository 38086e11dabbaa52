"""What is noted of each output, without an engine: edits are seen, times alone are not."""

import importlib
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def contents(monkeypatch, tmp_path):
    """The workflow's module, in a folder with one output that is noted."""
    monkeypatch.syspath_prepend(str(ROOT / "workflow"))
    monkeypatch.chdir(tmp_path)
    Path("out.csv").write_text("a,b\n1,2\n")
    module = importlib.import_module("contents")
    module.record("out.csv")
    return module


def test_a_file_is_as_recorded_until_a_byte_differs_whatever_its_times_say(contents):
    assert contents.is_as_recorded("out.csv")
    os.utime("out.csv", (0, 0))
    assert contents.is_as_recorded("out.csv")
    times = os.stat("out.csv")
    Path("out.csv").write_text("a,b\n1,3\n")  # as long as before
    os.utime("out.csv", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert not contents.is_as_recorded("out.csv")
    Path("out.csv").write_text("a,b\n1,2\n")
    assert contents.is_as_recorded("out.csv")


def test_a_file_is_read_again_only_if_it_may_differ(contents, monkeypatch):
    read = []
    whole = contents.sha256
    monkeypatch.setattr(contents, "sha256", lambda path: read.append(path.name) or whole(path))
    assert contents.is_as_recorded("out.csv") and not read
    os.utime("out.csv", (0, 0))
    assert contents.is_as_recorded("out.csv") and read == ["out.csv"]
    assert contents.is_as_recorded("out.csv") and read == ["out.csv"]


def test_only_a_true_checksum_is_taken_and_a_torn_note_counts_as_none(contents):
    known = contents.recorded("out.csv")
    assert not contents.take("out.csv", "0" * 64) and contents.recorded("out.csv") == known
    note = contents.RECORDS / "out.csv"
    note.write_text(note.read_text()[:20])
    assert contents.recorded("out.csv") is None and not contents.is_as_recorded("out.csv")
    assert contents.take("out.csv", known) and contents.is_as_recorded("out.csv")
    assert not contents.take("gone.csv", known)
    Path("out.csv").unlink()
    contents.record("out.csv")
    assert contents.recorded("out.csv") == known  # it was made, and is to be made again
    Path("out.csv").write_text("a,b\n1,2\n")
    assert not contents.is_as_recorded("out.csv")  # what was recorded last is a job that failed
    assert contents.take("out.csv", known) and contents.is_as_recorded("out.csv")
    assert list(contents.all_recorded()) == ["out.csv"]


def test_a_half_written_pack_of_records_is_none(contents):
    """A writer that was killed leaves it."""
    packed = importlib.import_module("packed")
    packs = packed.records_file("mine", "train")
    packs.parent.mkdir(parents=True)
    packs.write_text("{}")
    packs.with_name(f".part-{packs.name}").write_text("{")
    assert packed._packs("mine") == [packs]
