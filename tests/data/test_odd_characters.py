"""Every reader gives back the characters that a file holds, or refuses it by its name."""

import csv
import gzip
import io
import json
import re
import tarfile
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.base.errors import UserError
from headcount.data import lines as lines_module
from headcount.data.entailment import read_pairs
from headcount.data.lines import FoundText, arriving_lines
from headcount.data.pairs import read_sentences
from headcount.data.text import clean
from headcount.data.trees import read_trees

ODD = (
    "\x01\x07\t\v\f\r\x1c\x1e\x1f\x7f\x85\xa0\xad\u0301\u061c\u200b\u200d\u2028\u2029\u2060\u3000"
    "\ufeff\ufffd\ufffe\U0001f468\U0010ffff\0\ud800 aé<>&;\"'#@_|=[]!-\\{}0"
)
LINES = st.lists(st.text(ODD, max_size=8), min_size=1, max_size=4)


def plain(lines):
    return "".join(f"{line}\n" for line in lines)


def as_lines(lines):
    """Rules 2 and 3 of lines: one carriage return at the end goes, and a mark at the start."""
    first, *others = [line.removesuffix("\r") for line in lines]
    return [first.removeprefix("\ufeff"), *others]


def table(lines):
    out = io.StringIO()
    rows = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    rows.writerows([line, "x"] for line in ["src", *lines])
    return out.getvalue()


def sgm(lines):
    segments = (f"<seg id='{n}'>{escape(line)}</seg>\n" for n, line in enumerate(lines))
    return f"<doc docid='d'>{''.join(segments)}</doc>"


def raw_sgm(lines):
    return sgm(lines).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def tmx(lines):
    units = (f"<tu><tuv xml:lang='de'><seg>{escape(line)}</seg></tuv></tu>" for line in lines)
    return f"<tmx><body>{''.join(units)}</body></tmx>"


def wmt(lines):
    return f"<dataset><doc id='d'><src lang='de'>{sgm(lines)[15:-6]}</src></doc></dataset>"


def as_xml(lines):
    """Line ends in XML are line feeds."""
    return [line.replace("\r", "\n") for line in lines]


def packed(text):
    return gzip.compress(text)


def member(text):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        info = tarfile.TarInfo("t")
        info.size = len(text)
        archive.addfile(info, io.BytesIO(text))
    return out.getvalue()


def same(lines):
    return list(lines)


FORMATS = {
    "plain": (plain, as_lines, {}),
    "gz": (plain, as_lines, {"name": "t.gz", "pack": packed}),
    "tgz": (plain, as_lines, {"name": "t.tgz", "pack": member, "member": "t"}),
    "tsv": (
        lambda lines: plain(f"x\t{line}\t" for line in lines),
        same,
        {"format": "tsv", "column": 2},
    ),
    "csv": (table, same, {"format": "csv", "column": "src"}),
    "sgm": (sgm, same, {"format": "sgm"}),
    "raw sgm": (raw_sgm, same, {"format": "sgm"}),
    "tmx": (tmx, as_xml, {"format": "tmx", "language": "de"}),
    "wmt": (wmt, as_xml, {"format": "wmt", "language": "de"}),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("odd")


def written(folder, content, name="t", pack=bytes, **how):
    (folder / name).write_bytes(pack(content.encode("utf-8", "surrogatepass")))
    return FoundText(folder / name, how.pop("member", None), name, **how)


@pytest.mark.parametrize("kind", FORMATS)
@given(lines=LINES)
def test_sentences_are_what_was_put_in_or_refused(folder, kind, lines):
    write, expected, how = FORMATS[kind]
    lines = [line.replace("\t", "") for line in lines] if kind == "tsv" else lines
    try:
        found = list(read_sentences(written(folder, write(lines), **how)))
    except UserError as fault:
        refused = (
            "[\0\ud800]" if kind not in ("tmx", "wmt") else "[\0-\x08\v\f\x0e-\x1f\ud800\ufffe]"
        )
        assert re.search(refused, "".join(lines)) and re.match(r"t[^:]*:", str(fault))
        assert re.search(r"t\S*( \(t\))?:\d|line \d", str(fault))
    else:
        assert found == expected(lines)


@given(lines=LINES)
def test_labelled_pairs_are_what_was_put_in_or_refused(folder, lines):
    rows = [{"sentence1": line, "sentence2": "x", "gold_label": "y"} for line in lines]
    text = written(folder, plain(map(json.dumps, rows)), "t.jsonl")
    try:
        found = read_pairs(text)
    except UserError as fault:
        assert "\ud800" in "".join(lines) and str(fault).startswith("t.jsonl:")
    else:
        assert [pair.first for pair in found] == lines


@given(words=LINES)
def test_words_of_trees_are_what_was_put_in_or_refused(folder, words):
    words = [word.replace("\t", "") for word in words]
    rows = [f"{n}\t{word}\t_\tX\t_\t_\t{n - 1}\tdep\t_\t_" for n, word in enumerate(words, 1)]
    text = written(folder, plain([*rows, ""]), "t.conllu")
    try:
        (tree,) = read_trees(text)
    except UserError as fault:
        odd = "\0" in "".join(words) or "\ud800" in "".join(words) or any("  " in w for w in words)
        assert (odd or set(words) == {"_"}) and str(fault).startswith("t.conllu:")
    else:
        assert tree.tokens == words


@given(line=st.text(ODD.replace("\0", "").replace("\ud800", "")))
def test_cleaning_takes_out_spaces_controls_and_marks_alone(line):
    controls = [c for c in line if (c < " " or "\x7f" <= c <= "\x9f") and not c.isspace()]
    kept = [c for c in line if not c.isspace() and c != "\ufeff" and c not in controls]
    found = clean(line)
    invisible = set(kept) <= set("\u200b\u2060\xad")
    assert [c for c in found if c != " "] == ([] if invisible else kept)


MANY = "\ufeffein Wörtchen\r\n\n\u2028 noch 🙂 eins\x0c\nohne Ende".encode()


class Arriving:
    """A stream of which one part arrives at each reading."""

    def __init__(self, parts: list[bytes]):
        self.parts = [*filter(None, parts), b""]

    def read1(self, most: int) -> bytes:
        return self.parts.pop(0)


def cut(text: bytes, places: list[int]) -> list[bytes]:
    ends = [0, *sorted(places), len(text)]
    return [text[start:end] for start, end in zip(ends, ends[1:], strict=False)]


@given(st.lists(st.integers(0, len(MANY)), max_size=6))
def test_any_cut_gives_the_lines_of_the_file(tmp_path_factory, places):
    path = tmp_path_factory.mktemp("lines") / "text"
    path.write_bytes(MANY)
    expected = list(FoundText(path).lines())
    assert len(expected) == 4 and expected[1] == ""
    found = list(arriving_lines(Arriving(cut(MANY, places)), "text"))
    assert [line for arrived in found for line in arrived] == expected
    assert all(found)


def test_lines_come_as_soon_as_they_have_ended():
    """Of three readings the first ends no line, the second two, the last one."""
    found = list(arriving_lines(Arriving([b"a", b"b\nc\nd", b"e\n"]), "text"))
    assert found == [["ab", "c"], ["de"]]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([b"good\nba", b"d\0\n"], "pipe:2: byte offset 8: expected UTF-8, found the byte 0x00"),
        ([b"good\n", b"\xff\n"], "pipe:2: byte offset 5: expected UTF-8, found the byte 0xFF"),
        ([b"good\n", b"x" * 9, b"x" * 9], "pipe:2: line longer than 16 bytes"),
    ],
)
def test_faults_have_the_number_of_their_line(monkeypatch, parts, message):
    monkeypatch.setattr(lines_module, "LONGEST_LINE", 16)
    with pytest.raises(UserError, match=message):
        list(arriving_lines(Arriving(parts), "pipe"))
