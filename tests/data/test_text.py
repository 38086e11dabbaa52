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
from headcount.data import lines as lines_module
from headcount.data.fetching.download import fetch_corpus
from headcount.data.lines import FoundText
from headcount.data.text import clean
from headcount.data.words import normaliser

ANY_LOSS = ("--max-dropped", "1")
FOUR = b"one 1\ntwo 2\nthree 3\nfour 4\n"


def read(path, member=None):
    return list(FoundText(path, member).lines())


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


LONG = b"w " * 100_000 + b"\nshort\n" + b"x" * 2**20 + b"\n"
EMPTY = "\u3000\nb\nc\n\n".encode(), "x\n\u00a0 \nz\n\n".encode()
COPIES = b"a\na\na\nseen\nseen\n", b"b\nb\nc\nd\nd\n"
DROPPING = ("--drop-duplicates", "true", "--drop-overlap", "true")
ODD = "a\u2028b\u0085c\x0cd\x0be\x1cf\rg\nh\x07i\n".encode()
INVISIBLE = "\ufeffa\ufeffb \u200bc\n\u00ad \u2060\u200b\x07\ufeff\nso\u00adft , .\n"
# Source, target, split, flags; both texts that are written (None: the same); some of the counts.
STEPS = {
    "spaces": (
        *(b"A  dog\tbarks .\nYes\n", "Ein\u00a0Hund\u3000bellt .\nJa\n".encode(), "train", ()),
        (b"A dog barks .\nYes\n", b"Ein Hund bellt .\nJa\n"),
        {"pairs_read": 2, "pairs_kept": 2, "found.empty": 0, "dropped.max_ratio": 0},
    ),
    # U+2028, U+0085, form feed, VT, FS and a lone CR are spaces, and so is BEL.
    "f18 only line feeds end lines": (
        *(ODD, b"1 2 3 4 5 6 7\n8 9\n", "train", ()),
        (b"a b c d e f g\nh i\n", b"1 2 3 4 5 6 7\n8 9\n"),
        {},
    ),
    "f19 line ends": (
        *(FOUR.replace(b"\n", b"\r\n"), FOUR.replace(b"2\n", b"2\r\n")[:-1], "train", ()),
        (FOUR, FOUR),
        {},
    ),
    "f20 byte order mark": (
        *(b"\xef\xbb\xbf" + FOUR, FOUR, "train", ()),
        (FOUR, FOUR),
        {},
    ),
    "invisible characters": (
        *(INVISIBLE.encode(), b"x\ny\nz\n", "dev", ()),
        ("ab \u200bc\n\nso\u00adft , .\n".encode(), b"x\ny\nz\n"),
        {"found.empty": 1, "src.invisible": 2, "src.spaced": 1},
    ),
    "f21 empty lines": (
        *(*EMPTY, "train", ANY_LOSS),
        (b"c\n", b"z\n"),
        {"dropped.empty": 3},
    ),
    "f21 every line of a test set keeps its number": (
        *(*EMPTY, "test_1", ()),
        (b"\nb\nc\n\n", b"x\n\nz\n\n"),
        {"found.empty": 3, "dropped.empty": 0},
    ),
    "f22 overlong lines and words": (
        *(LONG, b"u " * 100_000 + b"\nkurz\nx\n", "train", ANY_LOSS),
        (b"short\n", b"kurz\n"),
        {"dropped.max_words": 1, "dropped.long_word": 1},
    ),
    "f22 overlong lines of dev stay": (
        *(LONG, b"u\nkurz\nx\n", "dev", ()),
        (LONG.replace(b" \n", b"\n"), b"u\nkurz\nx\n"),
        {"found.max_words": 1, "found.long_word": 1, "dropped.long_word": 0},
    ),
    "f24 copies are counted": (
        *(*COPIES, "train", ("--held-out", "dev.src")),
        COPIES,
        {"found.duplicates": 2, "found.overlap": 2, "dropped.duplicates": 0, "dropped.overlap": 0},
    ),
    # The second copy of a pair is a duplicate, so the overlap sees one pair only.
    "f24 copies are dropped": (
        *(*COPIES, "train", ("--held-out", "dev.src", *DROPPING)),
        (b"a\na\n", b"b\nc\n"),
        {"dropped.duplicates": 2, "dropped.overlap": 1},
    ),
}


@pytest.mark.parametrize("case", STEPS)
def test_texts_and_counts(step, case):
    source, target, split, flags, texts, counts = STEPS[case]
    if "--held-out" in flags:
        assert step(b"seen\n\n", b"x\n\n", "dev") == 0
        flags = [step.out / flag if flag == "dev.src" else flag for flag in flags]
    assert step(source, target, split, *flags) == 0
    written, facts = step.result(split)
    assert tuple(written) == texts
    for key, value in counts.items():
        outer, _, inner = key.partition(".")
        assert (facts[outer][inner] if inner else facts[outer]) == value, key


def test_f24_dropping_an_overlap_needs_held_out_files(step):
    assert step(*COPIES, "train", *DROPPING) == 2


@pytest.mark.parametrize("nothing", [b"", b"\n \n\n", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("split", ["train", "dev"])
def test_f21_nothing_remains(step, nothing, split):
    assert step(nothing, nothing, split) == 2
    assert not list(step.out.glob("*"))


@pytest.mark.parametrize("cut", [10, 100, -9, -4, -1])
def test_f14_truncated_gzip(step, cut):
    packed = gzip.compress(b"".join(b"%d words\n" % i for i in range(10_000)))
    assert step(packed[:cut], packed[:cut], suffix=".gz") == 2
    assert not list(step.out.glob("*"))


def test_f15_damage_and_many_members(step):
    packed = gzip.compress(FOUR)
    wrong_crc = packed[:-8] + bytes([packed[-8] ^ 1]) + packed[-7:]
    for source, target in ((wrong_crc, packed), (packed + b"garbage", packed), (packed, FOUR)):
        assert step(source, target, suffix=".gz") == 2
        assert not list(step.out.glob("*"))
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
    assert read(path, "in/train.en") == ["one 1", "two 2", "three 3", "four 4"]
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


def test_f16_x25_odd_archives_are_refused(write, tmp_path):
    """Many members, one name spelt twice, a name without end, a negative size, a sparse file."""
    plain = tarfile.REGTYPE
    many = [(f"m{n}", b"", plain) for n in range(500)]
    assert len(read(write(archive([*many, ("t", FOUR, plain)]), "a.tgz"), "t")) == 4
    alike = [("a//t", b"other\n", plain), ("a/t", FOUR, plain)]
    assert len(read(write(archive(alike), "a.tgz"), "a/t")) == 4
    negative = (-(10**6)).to_bytes(12, "big", signed=True)
    for packed, words in (
        (archive(many), "found m0, m1, .*, m9, …$"),
        (archive([("n" * 80_000, FOUR, plain)]), "found n{100}$"),
        (gzip.compress(header(size=negative)), "damaged, cut short"),
        (gzip.compress(header(kind=b"S")), "expected t to be a plain file"),
    ):
        with pytest.raises(UserError, match=words):
            read(write(packed, "a.tgz"), "t")
    assert [path.name for path in tmp_path.iterdir()] == ["a.tgz"]


def header(size: bytes = b"00000000000\0", kind: bytes = b"0") -> bytes:
    """An archive of one member `t`, with such a size and kind in its header, and nothing more."""
    block = bytearray(tarfile.TarInfo("t").tobuf(tarfile.GNU_FORMAT))
    block[124:136], block[156:157], block[148:156] = size, kind, b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + bytes(1024)


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


def test_f22_endless_line(write, monkeypatch):
    monkeypatch.setattr(lines_module, "LONGEST_LINE", 100)
    with pytest.raises(UserError, match="text.en:2: line longer than 100 bytes"):
        read(write(b"a\n" + b"b" * 101 + b"\n"))


def test_f25_normal_forms():
    decomposed, ligature = "e\u0301", "\ufb01n"
    composed, as_read = (normaliser(SpellingSettings(normal_form=form)) for form in ("NFC", "none"))
    assert composed(decomposed) == "\u00e9" and as_read(decomposed) == decomposed
    assert composed(ligature) == ligature  # it may look the same, and is another letter
    marks = "\u05d0\u200f \u05d1"
    assert composed(clean(marks)) == marks


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
    for name, pack in list(zip(names, packers, strict=True))[1:]:
        with pytest.raises(UserError, match="damaged"):
            read(write(pack(FOUR)[:-3], name))


@pytest.mark.parametrize("line", ["J\u030c", "H\u0331", "T\u0308", "E\u0301", "\u0130"])
def test_what_is_spelt_stays_when_it_is_spelt_again(line):
    """Test sentences are written as text, and as what a model reads once more."""
    spelt = normaliser(TextSettings(lowercase=True))
    assert spelt(spelt(line)) == spelt(line)


def test_f17_faults_name_the_own_file_and_not_its_copy(tmp_path, capsys):
    own, raw = tmp_path / "own", tmp_path / "raw"
    own.mkdir()
    packed = {"path": str(own / "t.de.tgz"), "member": "t"}
    for en, de, words in (
        (FOUR, FOUR[:-7], f"{own}/t.en has 4 sentences, {own}/t.de.tgz (t) has 3 sentences"),
        (b"one 1\n\xff\n", FOUR, f"{own}/t.en:2: byte offset 6: expected UTF-8"),
        (FOUR, b"one 1\n\xff\n", f"{own}/t.de.tgz (t):2: byte offset 6: expected"),
        (b"\n", b"\n", f"{own}/t.en, {own}/t.de.tgz: no pair with words"),
    ):
        (own / "t.en").write_bytes(en)
        (own / "t.de.tgz").write_bytes(archive([("t", de, tarfile.REGTYPE)]))
        sides = {"en": {"path": str(own / "t.en")}, "de": packed}
        fetch_corpus("c", {"splits": {"train": sides}}, raw)
        assert Step(raw).again("train") == 2
        message = capsys.readouterr().err
        assert words in message and str(raw) not in message
