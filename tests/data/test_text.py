"""The text step: one rule for lines, no line lost or made, no output from faulty files."""

import bz2
import gzip
import io
import lzma
import tarfile
from itertools import pairwise

import pytest
from text_step import Step

from headcount.base.errors import UserError
from headcount.base.settings.data import SpellingSettings, TextSettings
from headcount.data import archives
from headcount.data import lines as lines_module
from headcount.data.fetching.download import fetch_corpus
from headcount.data.lines import LineTally, read_lines
from headcount.data.parting import parting_line
from headcount.data.spelling import spelling
from headcount.data.text import clean

ANY_LOSS = ("--max-dropped", "1")
FOUR = b"one 1\ntwo 2\nthree 3\nfour 4\n"


def read(path, member=None):
    tally = LineTally()
    return list(read_lines(path, member, tally)), tally


@pytest.fixture
def write(tmp_path):
    def write_bytes(content, name="text.en"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write_bytes


@pytest.fixture
def step(tmp_path):
    return Step(tmp_path)


def test_clean_pairs_and_counts(step):
    assert step(b"A  dog\tbarks .\nYes\n", "Ein\u00a0Hund\u3000bellt .\nJa\n".encode()) == 0
    texts, counts = step.result()
    assert texts == [b"A dog barks .\nYes\n", b"Ein Hund bellt .\nJa\n"]
    assert (counts["pairs_read"], counts["pairs_kept"]) == (2, 2)
    assert not any(counts["dropped"].values()) and not any(counts["found"].values())


@pytest.mark.parametrize("cut", [10, 100, -9, -4, -1])
def test_f14_truncated_gzip(step, capsys, cut):
    packed = gzip.compress(b"".join(b"%d words\n" % i for i in range(10_000)))
    assert step(packed[:cut], packed[:cut], suffix=".gz") == 2
    assert "damaged, cut short" in capsys.readouterr().err
    assert not list(step.out.glob("*"))


def test_f15_damage_and_many_members(step, capsys):
    packed = gzip.compress(FOUR)
    wrong_crc = packed[:-8] + bytes([packed[-8] ^ 1]) + packed[-7:]
    for content in (wrong_crc, packed + b"garbage"):
        assert step(content, content, suffix=".gz") == 2
        assert "CRC" in (message := capsys.readouterr().err) or "Not a gzipped" in message
        assert not list(step.out.glob("*"))
    assert step(packed + packed, FOUR + FOUR, suffix=".gz") == 2  # the target is no gzip
    both = gzip.compress(FOUR) + gzip.compress(b"five 5\n")
    assert step(both, both, suffix=".gz") == 0
    assert step.result()[0][0] == FOUR + b"five 5\n"


def archive(members):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as file:
        for name, content, kind in members:
            info = tarfile.TarInfo(name)
            info.type, info.size, info.linkname = kind, len(content), "/etc/passwd"
            file.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def test_f16_archive_members_are_read_never_unpacked(tmp_path, write):
    plain = tarfile.REGTYPE
    members = [("../../up", b"x", plain), ("/abs", b"x", plain), ("in/train.en", FOUR, plain)]
    path = write(archive(members + [("in/TRAIN.EN", b"other\n", plain)]), "a.tgz")
    assert read(path, "in/train.en")[0] == ["one 1", "two 2", "three 3", "four 4"]
    assert [p.name for p in tmp_path.iterdir()] == ["a.tgz"]

    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE):
        path = write(archive([("t", b"", kind)]), "a.tgz")
        with pytest.raises(UserError, match="plain file"):
            read(path, "t")
    path = write(archive([("t", FOUR, plain), ("t", b"other\n", plain)]), "a.tgz")
    with pytest.raises(UserError, match="more than one t"):
        read(path, "t")
    with pytest.raises(UserError, match="expected a member absent, found t, t"):
        read(path, "absent")
    packed = archive([("t", FOUR * 1000, plain)])
    with pytest.raises(UserError, match="damaged"):
        read(write(packed[:-20], "a.tgz"), "t")


def test_f16_bombs_are_refused(write, monkeypatch):
    dense = (b"a" * 1023 + b"\n") * 4096
    with pytest.raises(UserError, match="bomb"):
        read(write(bz2.compress(dense), "a.bz2"))
    monkeypatch.setattr(archives, "HIGHEST_RATIO", 100)
    path = write(archive([("t", dense, tarfile.REGTYPE)]), "a.tgz")
    with pytest.raises(UserError, match="bomb"):
        read(path, "t")
    monkeypatch.setattr(archives, "LARGEST_TEXT", 20)
    with pytest.raises(UserError, match="more than 20 bytes"):
        read(write(gzip.compress(FOUR), "a.gz"))


def test_f16_x25_odd_archives_are_bounded(write, tmp_path):
    """Many members, one name spelt twice, a name without end, a negative size, a sparse file."""
    plain = tarfile.REGTYPE
    many = [(f"m{n}", b"", plain) for n in range(500)]
    assert len(read(write(archive([*many, ("t", FOUR, plain)]), "a.tgz"), "t")[0]) == 4
    with pytest.raises(UserError, match="expected a member t, found m0, m1, .*, m9, …$"):
        read(write(archive(many), "a.tgz"), "t")
    alike = [("a//t", b"other\n", plain), ("a/t", FOUR, plain)]
    assert len(read(write(archive(alike), "a.tgz"), "a/t")[0]) == 4
    with pytest.raises(UserError, match="expected a member t, found n{100}$"):
        read(write(archive([("n" * 80_000, FOUR, plain)]), "a.tgz"), "t")
    negative = (-(10**6)).to_bytes(12, "big", signed=True)
    with pytest.raises(UserError, match="damaged, cut short, .* after 0 good lines"):
        read(write(gzip.compress(header(size=negative)), "a.tgz"), "t")
    with pytest.raises(UserError, match="expected t to be a plain file, found a link or device"):
        read(write(gzip.compress(header(kind=b"S")), "a.tgz"), "t")
    assert [path.name for path in tmp_path.iterdir()] == ["a.tgz"]


def header(size: bytes = b"00000000000\0", kind: bytes = b"0") -> bytes:
    """An archive of one member `t`, with such a size and kind in its header, and nothing more."""
    block = bytearray(tarfile.TarInfo("t").tobuf(tarfile.GNU_FORMAT))
    block[124:136], block[156:157], block[148:156] = size, kind, b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + bytes(1024)


def test_f17_misaligned_sides(step, capsys):
    source = [b"a short one", b"on page 12 of the book", b"yes", b"there were 300 of them", b"no"]
    target = [line.upper() for line in source]
    doubled = target[:2] + [b"AN EXTRA LINE THAT TRANSLATES NOTHING AT ALL"] + target[2:]
    lines = (b"".join(line + b"\n" for line in side) for side in (source, doubled))
    assert step(*lines) == 2
    message = capsys.readouterr().err
    assert "a has 5 lines" in message and "b has 6 lines" in message
    assert "suspicious line is 3 " in message
    assert not list(step.out.glob("*"))


def test_f17_faults_name_ones_own_file_and_not_its_copy(tmp_path, capsys):
    own, raw = tmp_path / "own", tmp_path / "raw"
    sides = {
        "en": {"path": str(own / "t.en")},
        "de": {"path": str(own / "t.de.tgz"), "member": "t"},
    }

    def told(en, de):
        own.mkdir(exist_ok=True)
        (own / "t.en").write_bytes(en)
        (own / "t.de.tgz").write_bytes(archive([("t", de, tarfile.REGTYPE)]))
        fetch_corpus("c", {"splits": {"train": sides}}, raw)
        step = Step(raw)
        assert step.again("train") == 2
        message = capsys.readouterr().err
        assert str(raw) not in message
        return message

    message = told(FOUR, FOUR[:-7])
    assert f"{own}/t.en has 4 lines; {own}/t.de.tgz (t) has 3 lines" in message
    assert f"{own}/t.en:2: byte offset 6: expected UTF-8" in told(b"one 1\n\xff\n", FOUR)
    assert f"{own}/t.de.tgz (t):2: byte offset 6: expected" in told(FOUR, b"one 1\n\xff\n")
    assert f"{own}/t.en, {own}/t.de.tgz: no train pair with words" in told(b"\n", b"\n")


def test_f17_parting_line_by_hand():
    # After line 2 the other side has two lines too many; numbers tell which line goes with which.
    shorter = ["1", "2", "3", "4"]
    assert parting_line(shorter, ["1", "2", "8", "9", "3", "4"], 2) == 3
    assert parting_line(shorter, ["9", "1", "2", "3", "4"], 1) == 1
    assert parting_line(shorter, ["1", "2", "3", "4", "9"], 1) == 5
    assert parting_line([], ["1"], 1) == 1


def test_f18_only_line_feeds_end_lines(step):
    text = "a\u2028b\u0085c\x0cd\x0be\x1cf\rg\nh\x07i\n".encode()
    assert step(text, b"1 2 3 4 5 6 7\n8 9\n") == 0
    texts, counts = step.result()
    assert texts[0] == b"a b c d e f g\nh i\n"
    assert counts["src"]["line_breaks"] == 6  # U+2028, U+0085, form feed, VT, FS and lone CR
    assert counts["src"]["controls"] == 1  # BEL


def test_f19_line_ends_make_no_difference(step):
    assert step(FOUR, FOUR) == 0
    expected = step.result()[0]
    assert step(FOUR.replace(b"\n", b"\r\n"), FOUR.replace(b"2\n", b"2\r\n")[:-1]) == 0
    texts, counts = step.result()
    assert texts == expected
    assert (counts["src"]["crlf"], counts["src"]["no_final_newline"]) == (4, 0)
    assert (counts["tgt"]["crlf"], counts["tgt"]["no_final_newline"]) == (1, 1)


def test_f20_byte_order_mark_is_dropped(step):
    assert step(b"\xef\xbb\xbf" + FOUR, FOUR) == 0
    texts, counts = step.result()
    assert texts[0] == FOUR
    assert (counts["src"]["bom"], counts["tgt"]["bom"]) == (1, 0)


def test_invisible_characters(step):
    source = "\ufeffa\ufeffb \u200bc\n\u00ad \u2060\u200b\x07\ufeff\nso\u00adft , .\n"
    assert step(source.encode(), b"x\ny\nz\n", "dev") == 0
    texts, counts = step.result("dev")
    assert texts[0].decode() == "ab \u200bc\n\nso\u00adft , .\n"
    assert counts["found"]["empty"] == 1
    assert {key: counts["src"][key] for key in ("bom", "invisible", "controls", "spaced")} == {
        "bom": 3, "invisible": 5, "controls": 1, "spaced": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "line", "offset"),
    [
        ("one\ntwo\n".encode("utf-16"), 1, 0),
        ("one\ntwo\n".encode("utf-16-le"), 1, 1),
        ("one\nçafé\n".encode("latin-1"), 2, 4),
        (b"\xef\xbb\xbfone\ntw\xffo\n", 2, 9),
        (b"one\n" + "\ud800".encode("utf-8", "surrogatepass") + b"\n", 2, 4),
        (b"one\ntwo\0\n", 2, 7),
    ],
)
def test_f20_anything_but_utf8(step, capsys, content, line, offset):
    assert step(content, FOUR) == 2
    assert f"a:{line}: byte offset {offset}: expected" in capsys.readouterr().err
    assert not list(step.out.glob("*"))


def test_f21_empty_lines(step, capsys):
    source, target = "\u3000\nb\nc\n\n".encode(), "x\n\u00a0 \nz\n\n".encode()
    assert step(source, target, "train", *ANY_LOSS) == 0
    texts, counts = step.result()
    assert texts == [b"c\n", b"z\n"]
    assert counts["dropped"]["empty"] == 3

    assert step(source, target, "test_1") == 0
    texts, counts = step.result("test_1")
    assert texts == [b"\nb\nc\n\n", b"x\n\nz\n\n"]  # every line keeps its number
    assert (counts["found"]["empty"], counts["dropped"]["empty"]) == (3, 0)

    for nothing in (b"", b"\n \n\n", b"\xef\xbb\xbf"):
        for split in ("train", "dev"):
            (step.out / f"{split}.src").unlink(missing_ok=True)
            assert step(nothing, nothing, split) == 2
            assert "with words on both sides" in capsys.readouterr().err
            assert not (step.out / f"{split}.src").exists()


def test_f22_overlong_lines_and_words(step):
    source = b"w " * 100_000 + b"\nshort\n" + b"x" * 2**20 + b"\n"
    target = b"u " * 100_000 + b"\nkurz\n" + b"x\n"
    assert step(source, target, "train", *ANY_LOSS) == 0
    texts, counts = step.result()
    assert texts == [b"short\n", b"kurz\n"]
    assert (counts["dropped"]["max_words"], counts["dropped"]["long_word"]) == (1, 1)
    assert step(source, target, "dev") == 0
    texts, counts = step.result("dev")
    assert texts[0].count(b"\n") == 3 and len(texts[0]) > 2**20
    assert (counts["found"]["max_words"], counts["found"]["long_word"]) == (1, 1)


def test_f22_endless_line(write, monkeypatch):
    monkeypatch.setattr(lines_module, "LONGEST_LINE", 100)
    with pytest.raises(UserError, match="text.en:2: line longer than 100 bytes"):
        read(write(b"a\n" + b"b" * 101 + b"\n"))


def test_f24_duplicates_and_overlap(step):
    assert step(b"seen\n\n", b"x\n\n", "dev") == 0
    source, target = b"a\na\na\nseen\nseen\n", b"b\nb\nc\nd\nd\n"
    held_out = ["--held-out", step.out / "dev.src"]
    assert step(source, target, "train", *held_out) == 0
    texts, counts = step.result()
    assert texts == [source, target]
    assert (counts["found"]["duplicates"], counts["found"]["overlap"]) == (2, 2)
    assert (counts["dropped"]["duplicates"], counts["dropped"]["overlap"]) == (0, 0)

    dropping = ["--drop-duplicates", "true", "--drop-overlap", "true"]
    assert step(source, target, "train", *held_out, *dropping) == 0
    texts, counts = step.result()
    assert texts == [b"a\na\n", b"b\nc\n"]
    # The second copy of a pair is counted as a duplicate, so the overlap sees one pair only.
    assert (counts["dropped"]["duplicates"], counts["dropped"]["overlap"]) == (2, 1)
    assert step(source, target, "train", *dropping) == 2  # nothing to compare with


def test_f25_normal_forms():
    decomposed, ligature = "e\u0301", "\ufb01n"
    composed, as_read = (spelling(SpellingSettings(normal_form=form)) for form in ("NFC", "none"))
    assert composed(decomposed) == "\u00e9" and as_read(decomposed) == decomposed
    assert composed(ligature) == ligature  # it may look the same, and is another letter
    marks = "\u05d0\u200f \u05d1"
    assert composed(clean(marks, LineTally())) == marks


def test_changed_raw_file_is_refused(step, capsys):
    assert step(FOUR, FOUR) == 0
    before = step.result()
    (step.folder / "a").write_bytes(FOUR.replace(b"one", b"One"))
    assert step.again("train") == 2
    assert "changed since its download" in capsys.readouterr().err
    assert step.result() == before  # earlier results stay
    (step.folder / "a").unlink()
    assert step.again("train") == 2
    assert "missing" in capsys.readouterr().err
    assert step.again("dev") == 2
    assert "expected the split 'dev'" in capsys.readouterr().err


def test_reading_is_the_same_packed_or_not(write):
    names = ("t.en", "t.en.gz", "t.en.bz2", "t.en.xz")
    packers = (bytes, gzip.compress, bz2.compress, lzma.compress)
    read_back = [read(write(pack(FOUR), name)) for name, pack in zip(names, packers, strict=True)]
    assert all(one == other for one, other in pairwise(read_back))
    assert read_back[0][1].lines == 4
    for name, pack in list(zip(names, packers, strict=True))[1:]:
        with pytest.raises(UserError, match="damaged"):
            read(write(pack(FOUR)[:-3], name))


@pytest.mark.parametrize("line", ["J\u030c", "H\u0331", "T\u0308", "E\u0301", "\u0130"])
def test_what_is_spelt_stays_when_it_is_spelt_again(line):
    """Test sentences are written as text, and as what a model reads once more."""
    spelt = spelling(TextSettings(lowercase=True))
    assert spelt(spelt(line)) == spelt(line)
