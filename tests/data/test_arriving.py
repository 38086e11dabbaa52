"""Lines of a stream are those of a file, however the text is cut into what arrives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.base.errors import UserError
from headcount.data import lines
from headcount.data.lines import LineTally, arriving_lines, read_lines

TEXT = "\ufeffein Wörtchen\r\n\n\u2028 noch 🙂 eins\x0c\nohne Ende".encode()


class Arriving:
    """A stream of which one part arrives at each reading."""

    def __init__(self, parts: list[bytes]):
        self.parts = [*filter(None, parts), b""]

    def read1(self, most: int) -> bytes:
        return self.parts.pop(0)


def cut(text: bytes, places: list[int]) -> list[bytes]:
    ends = [0, *sorted(places), len(text)]
    return [text[start:end] for start, end in zip(ends, ends[1:], strict=False)]


@given(st.lists(st.integers(0, len(TEXT)), max_size=6))
def test_any_cut_gives_the_lines_of_the_file(tmp_path_factory, places):
    path = tmp_path_factory.mktemp("lines") / "text"
    path.write_bytes(TEXT)
    tallies = LineTally(), LineTally()
    expected = list(read_lines(path, None, tallies[0]))
    assert len(expected) == 4 and expected[1] == ""
    found = list(arriving_lines(Arriving(cut(TEXT, places)), "text", tallies[1]))
    assert [line for arrived in found for line in arrived] == expected
    assert tallies[0] == tallies[1] and all(found)


def test_lines_come_as_soon_as_they_have_ended():
    """Of three readings the first ends no line, the second two, the last one."""
    found = list(arriving_lines(Arriving([b"a", b"b\nc\nd", b"e\n"]), "text", LineTally()))
    assert found == [["ab", "c"], ["de"]]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([b"good\nba", b"d\0\n"], "pipe:2: byte offset 8: expected text, found a NUL byte"),
        ([b"good\n", b"\xff\n"], "pipe:2: byte offset 5: expected UTF-8, found the byte 0xFF"),
        ([b"good\n", b"x" * 9, b"x" * 9], "pipe:2: line longer than 16 bytes"),
    ],
)
def test_faults_have_the_number_of_their_line(monkeypatch, parts, message):
    monkeypatch.setattr(lines, "LONGEST_LINE", 16)
    with pytest.raises(UserError, match=message):
        list(arriving_lines(Arriving(parts), "pipe", LineTally()))
