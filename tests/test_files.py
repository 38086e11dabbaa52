"""Files that are whole or absent."""

import json
import math

import pytest

from headcount.base.files import sha256, whole_file, write_json, write_text


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
