"""Files that are whole or absent."""

import json
import math
import os
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from headcount.base.errors import UserError
from headcount.base.files import (
    check_apart,
    check_replaceable,
    hold,
    sha256,
    whole_file,
    whole_folder,
    write_csv,
    write_json,
    write_text,
)
from headcount.data.lines import write_lines


def test_a_block_that_raises_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "sub" / "a.txt"
    write_text(path, "old\n")
    with pytest.raises(RuntimeError), whole_file(path) as part:
        part.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old\n"
    assert [found.name for found in path.parent.iterdir()] == ["a.txt"]


def test_what_a_killed_writer_left_is_replaced(tmp_path):
    path = tmp_path / "a.txt"
    with whole_file(path) as part:
        left = part
        part.write_text("x")
    left.write_text("a longer half, left by a kill")
    write_text(path, "new\n")
    assert path.read_bytes() == b"new\n"
    assert [found.name for found in tmp_path.iterdir()] == ["a.txt"]


def test_what_has_its_name_is_on_the_disk_and_so_is_the_name(tmp_path, monkeypatch):
    """Flushed are the file, and after its renaming the folder that it stands in; a folder too."""
    steps = []
    monkeypatch.setattr(os, "fsync", lambda handle: steps.append(os.fstat(handle).st_ino))
    for name in ("replace", "rename"):
        monkeypatch.setattr(os, name, _noted(getattr(os, name), steps))
    with whole_folder(tmp_path / "folder") as part:
        write_text(part / "a.txt", "new\n")
    folder = tmp_path / "folder"
    file, inner, outer = (path.stat().st_ino for path in (folder / "a.txt", folder, tmp_path))
    assert steps == [file, "renamed", inner, "renamed", outer]


def test_the_folder_that_was_there_stays_until_the_new_one_has_its_name(tmp_path, monkeypatch):
    folder = tmp_path / "folder"

    def write(content):
        with whole_folder(folder) as part:
            write_text(part / "a.txt", content)

    def stopped(path, **_):
        if path.name == ".part-folder" and path.exists():
            raise KeyboardInterrupt

    write("old")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(shutil, "rmtree", stopped)
        write("new")
    assert (folder / "a.txt").read_text() == "new"
    write("newer")  # what was left aside goes
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def _noted(rename, steps):
    def wrapped(*paths):
        steps.append("renamed")
        return rename(*paths)

    return wrapped


def test_text_is_utf_8_with_plain_line_ends_and_json_has_no_nan(tmp_path):
    write_text(tmp_path / "t", "ä\n")
    assert (tmp_path / "t").read_bytes() == b"\xc3\xa4\n"
    write_json(tmp_path / "j", {"b": [1], "a": "ä"})
    assert json.loads((tmp_path / "j").read_text(encoding="utf-8")) == {"b": [1], "a": "ä"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "j", {"loss": math.nan})
    assert json.loads((tmp_path / "j").read_text(encoding="utf-8"))["b"] == [1]


def test_sha256_of_a_known_text(tmp_path):
    (tmp_path / "t").write_bytes(b"abc")  # the standard's own example, FIPS 180-2, B.1
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert sha256(tmp_path / "t") == expected


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """A limit on every file, which what is beyond it does not fit.

    No longer than it is needed: what pytest prints may go to a file, too.
    """
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


def test_f32_a_file_that_does_not_fit_is_named(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old\n")
    writers = {path: lambda: write_text(path, "ä" * 1000)}
    writers |= {path: lambda: write_lines(path, ["0123456789"] * 200)}
    writers |= {tmp_path / "lock": lambda: hold(tmp_path / "lock", "here")}
    for name, write in writers.items():
        with largest_file(0), pytest.raises(OSError, match="File too large") as fault:
            write()
        assert fault.value.filename == str(name)
    assert path.read_text() == "old\n"
    assert {file.name for file in tmp_path.iterdir()} == {"a.txt", "lock"}


def test_f32_of_two_files_at_once_the_one_is_named_that_does_not_fit(tmp_path):
    with (
        largest_file(1000),
        pytest.raises(OSError, match="File too large") as fault,
        whole_file(tmp_path / "first") as part,
    ):
        part.write_text("fits")
        write_text(tmp_path / "second", "x" * 1001)
    assert fault.value.filename == str(tmp_path / "second") and not list(tmp_path.iterdir())


def test_x13_a_name_that_is_too_long_is_named_as_it_was_given(tmp_path):
    path = tmp_path / ("a" * 300)
    with pytest.raises(OSError, match="File name too long") as fault:
        write_text(path, "text")
    assert fault.value.filename == str(path)


def test_a_folder_takes_the_place_of_its_own_kind_alone(tmp_path):
    own = tmp_path / "own"
    check_replaceable(own, "a part", ["mark"])
    own.mkdir()
    check_replaceable(own, "a part", ["mark"])
    (own / "mark").touch()
    check_replaceable(own, "a part", ["mark"])
    (own / "thesis").touch()
    (tmp_path / "link").symlink_to(own)
    for path in (own, tmp_path / "link", own / "thesis"):
        with pytest.raises(UserError, match=f"^{path}: "):
            check_replaceable(path, "a part", ["mark"])


def test_an_output_folder_lies_apart_from_the_inputs(tmp_path):
    """`abc` is no part of `ab`; links are followed, as is a path with dots."""
    given, link = tmp_path / "ab", tmp_path / "link"
    (given / "model").mkdir(parents=True)
    link.symlink_to(given)
    check_apart(tmp_path / "abc", [given, link])
    for out in (given, link, link / "model", given / "new", tmp_path, given / ".." / "ab"):
        with pytest.raises(UserError, match="expected a folder apart from all inputs"):
            check_apart(out, [given])


def test_a_row_that_does_not_fit_its_columns_is_a_bug_and_writes_nothing(tmp_path):
    with pytest.raises(ValueError, match="expected 2 values, found 3"):
        write_csv(tmp_path / "table.csv", ("a", "b"), [(1, 2), (1, 2, 3)])
    assert not (tmp_path / "table.csv").exists()
