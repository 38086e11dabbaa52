"""Formats of published text, and archives, sound and broken."""

import gzip
import io
import stat
import tarfile
import zipfile

import pytest

from headcount.base.errors import UserError
from headcount.data.fetching.download import fetch_corpus
from headcount.data.lines import FoundText
from headcount.data.markup import read_segments
from headcount.data.pairs import RawSplit, overlaps, read_sentences


@pytest.fixture
def text(tmp_path):
    """A raw text of some content, to be read as the keys say."""

    def written(content, name="a.txt", **how):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return FoundText(path, how.pop("member", None), name, **how)

    return written


def read(found):
    return list(read_sentences(found))


TALK = (
    "<doc docid='1'>\n<url>http://x</url>\n<keywords>a, b</keywords>\n<speaker>C</speaker>\n"
    "<talkid>7</talkid>\n<title>A title</title>\n<description>TED Talk: what</description>\n"
    "<reviewer href='u'>D</reviewer>\n<translator href='u'>E</translator>\n"
    " A sentence & <b>more</b>.\n\n</doc>\n"
)
MOSES = "it &apos;s &quot; a &#91; b &#93; &quot; at AT &amp; T , not &amp;apos;\n"
CSV = 'src,tgt\n"a, ""b""\nc",d\ne,f\n'


@pytest.mark.parametrize(
    ("content", "ways", "expected"),
    [
        (
            *(TALK, {"format": "ted"}),
            ["A title", "TED Talk: what", " A sentence & <b>more</b>.", ""],
        ),
        (MOSES, {"format": "moses"}, ["""it 's " a [ b ] " at AT & T , not &apos;"""]),
        ("1\ta b\tc\n2\td\te\n", {"format": "tsv", "column": 2}, ["a b", "d"]),
        ("x ||| y\n", {"format": "tsv", "column": 1, "separator": " ||| "}, ["x"]),
        ('de\ten\na\t"b\n', {"format": "tsv", "column": "en"}, ['"b']),
        ("1\t2\t3\n1\t2\n", {"format": "tsv", "column": 3}, ":2: expected 3 columns, found 2"),
        (CSV, {"format": "csv", "column": "src"}, ['a, "b"\nc', "e"]),
        (CSV.replace(",", "|"), {"format": "csv", "column": 2, "separator": "|"}, ["tgt", *"df"]),
        (CSV, {"format": "csv", "column": "x"}, ":1: expected a column 'x', found src, tgt"),
        ('a,b\n"c"d,e\n', {"format": "csv", "column": 1}, ":2: not CSV"),
    ],
)
def test_lines_and_tables(text, content, ways, expected):
    check(text(content, **ways), expected)


def check(found, expected):
    """The sentences are as expected, or a fault is."""
    if isinstance(expected, list):
        assert read(found) == expected
        return
    with pytest.raises(UserError, match=f"{found.shown}{expected}"):
        read(found)


def tmx(*units):
    body = "".join(f"<tu>{unit}</tu>" for unit in units)
    return (
        '<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd">'
        f'<tmx version="1.4"><header/><body>{body}</body></tmx>'
    )


def side(language, words, key="xml:lang"):
    return f'<tuv {key}="{language}"><seg>{words}</seg></tuv>'


def test_translation_memories(text):
    memory = tmx(
        side("EN-us", "A &amp;amp; <bpt i='1'>{\\b</bpt>bold<ept i='1'>}</ept>\n<hi>word</hi>.")
        + side("ro", "unu", key="lang"),
        side("ro", "doi"),
        side("en", "three") + side("ro", "trei"),
    )
    english = text(memory, "a.tmx", format="tmx", language="en")
    assert read(english) == ["A &amp; bold\nword.", "", "three"]
    packed = text(gzip.compress(memory.encode()), "a.tmx.gz", format="tmx", language="ro")
    assert read(packed) == ["unu", "doi", "trei"]
    check(
        text(memory, "a.tmx", format="tmx", language="tr"),
        ": expected sentences in 'tr', found en, en-US, ro",
    )
    check(text(memory[:-30], "a.tmx", format="tmx", language="en"), ": not well-formed XML")
    cut = gzip.compress(memory.encode())[:-12]
    check(text(cut, "a.tmx.gz", format="tmx", language="en"), ": damaged, cut short")


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("pt_BR", ["ônibus", "verde BR", ""]),
        ("PT_pt", ["autocarro", "verde PT", "Lisboa"]),
        ("en", ["bus", "green", "Lisbon"]),
        ("eng_GB", ["bus", "green", "Lisbon"]),
        (
            "pt",
            ": unit 1: expected one text in 'pt', found pt-PT and pt-BR; .* pt_PT or pt_BR",
        ),
        ("en_US", ": expected sentences in 'en_US', found en-GB, pt-BR, pt-PT"),
    ],
)
def test_variants_of_a_language_are_never_mixed(text, language, expected):
    memory = tmx(
        side("en-gb", "bus") + side("pt-PT", "autocarro") + side("pt_br", "ônibus"),
        side("en-GB", "green") + side("pt-BR", "verde BR") + side("pt-PT", "verde PT"),
        side("en-GB", "Lisbon") + side("pt-PT", "Lisboa"),
    )
    check(text(memory, "a.tmx", format="tmx", language=language), expected)


def test_a_unit_with_two_sentences_in_one_language_is_empty(text):
    memory = tmx(
        side("de", "eins") + side("de-at", "zwei"),
        side("DE-at", "drei"),
        side("de", "vier") + side("de", "fünf"),
        side("de", "sechs") + side("DE", "sechs"),
    )
    found = text(memory, "a.tmx", format="tmx", language="de")
    assert read(found) == ["eins", "drei", "", "sechs"]


CODES = """
Press <bpt i='1'>&lt;b&gt;</bpt>Enter<ept i='1'>&lt;/b&gt;</ept>, then => Press Enter, then
see <ph>&lt;img alt='<sub>a box</sub>'/&gt;</ph>the <hi>red <hi>deep</hi></hi> => see the red deep
box.<it pos='end'>x</it> End => box. End
one<ph>&lt;br/&gt;</ph>two.<bpt i='1'>&lt;/p&gt;</bpt>Three<ph type='lb'/>! => one two. Three !
un<bpt i='1'>&lt;b&gt;</bpt>believ<ept i='1'>&lt;/b&gt;</ept>able => unbelievable
one<ph/><ph/>two <ph>{1}</ph>, 猫<ph/>犬 => one two , 猫犬
"""


@pytest.mark.parametrize("row", CODES.strip().split("\n"))
def test_inline_codes_join_no_words(text, row):
    words, expected = row.split(" => ")
    memory = tmx(side("de", words)).replace('"1.0"', '"1.0" encoding="UTF-16"', 1)
    assert read(text(memory.encode("utf-16"), "a.tmx", format="tmx", language="de")) == [expected]


def test_f16_entities_of_xml_cannot_grow(text):
    bomb = '<!DOCTYPE t [<!ENTITY a "aaaaaaaaaa">'
    for this, last in zip("bcdefghij", "abcdefghi", strict=True):
        bomb += f'<!ENTITY {this} "{f"&{last};" * 10}">'
    memory = f"{bomb}]><tmx><body><tu>{side('en', '&j;')}</tu></body></tmx>"
    found = text(memory, "a.tmx", format="tmx", language="en")
    check(found, ": not well-formed XML .limit on input amplification")


def test_a_memory_is_read_in_little_space(text):
    """Elements that were read are let go of, with their text."""
    import tracemalloc

    memory = tmx(*(side("en", f"{n} {'word ' * 100}") for n in range(4000))).encode()
    found = text(memory, "a.tmx", format="tmx", language="en")
    tracemalloc.start()
    assert sum(1 for _ in read_sentences(found)) == 4000
    assert tracemalloc.get_traced_memory()[1] < len(memory) / 4
    tracemalloc.stop()


def sgm(*segments, head="<doc docid='d' sysid='ref'>"):
    return f"<srcset>{head}\n<hl>\n{''.join(segments)}</hl>\n</doc></srcset>"


def test_other_marks_in_a_segment_are_its_text(text):
    held = "a<br/>b</B> <!-- c --> <? d> <title> <!DOCTYPE html> <3 <doc docid='e'> <ref>"
    found = read_segments(text(sgm(f"<seg id=1>{held}</seg>"), format="sgm"))
    assert found == {("d", "1"): held}


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ("a <![CDATA[ b & &lt; <c> ]]> d", "a  b & &lt; <c>  d"),
        ("<![CDATA[whole sentence]]>", "whole sentence"),
        ("a <![CDATA[ b", "a <![CDATA[ b"),
        (" Q&A &amp;lt; AT&amp;T &lt;b&gt; \nand d < e ", " Q&A &lt; AT&T <b> \nand d < e "),
        ("x?y=1&copy=2&lang=en &copy; &hearts &nope;", "x?y=1&copy=2&lang=en © &hearts &nope;"),
        ("&#8211;&#x2014;&#0;&#xD800;&#1;&#x110000;", "–—&#0;&#xD800;&#1;&#x110000;"),
    ],
)
def test_marked_sections_and_references(text, held, expected):
    content = f"<!-- <seg id=0>old</seg> -->{sgm(f'<seg id=1>{held}</seg><seg id=2/>')}"
    assert read(text(content.replace("/>", "></seg>"), format="sgm")) == [expected, ""]


WMT = """<?xml version='1.0' encoding='utf-8'?>
<dataset id="newstest2021"><collection id="general">
<doc id="x.1" origlang="en">
<src lang="en"><p><seg id="1">Salt &amp; &amp;lt;</seg></p><p><seg id="2">One\ntwo</seg></p></src>
<ref lang="de" translator="A"><p><seg id="1">Salz A</seg></p><p><seg id="2"/></p></ref>
<ref lang="de" translator="B"><p><seg id="1">Salz B</seg></p><p><seg id="2">Zwei B</seg></p></ref>
<hyp system="on-line" lang="de"><p><seg id="1">Salz S</seg></p><p><seg id="2">S</seg></p></hyp>
</doc>
<doc id="suite" origlang="en" testsuite="t"><src lang="en"><p><seg id="1">no</seg></p></src></doc>
</collection></dataset>
"""


@pytest.mark.parametrize(
    ("language", "translator", "expected"),
    [
        ("en", None, ["Salt & &lt;", "One\ntwo"]),
        ("de", "A", ["Salz A", ""]),
        ("deu", "2", ["Salz B", "Zwei B"]),
        ("de", None, ": has a segment twice; name one translator of A, B"),
        ("de", "3", ": expected segments of translator 3, found A, B"),
        ("de", "C", ": expected segments of translator C, found A, B"),
        ("cs", None, ": expected sentences in 'cs', found de, en"),
    ],
)
def test_xml_of_wmt_since_2021(text, language, translator, expected):
    found = text(WMT, "a.xml", format="wmt", language=language, translator=translator)
    check(found, expected)
    if isinstance(expected, list):
        assert list(read_segments(found)) == [("x.1", "1"), ("x.1", "2")]


def test_sides_of_wmt_are_one_file(tmp_path):
    (tmp_path / "t.xml").write_text(WMT)
    side = {"path": str(tmp_path / "t.xml"), "format": "wmt"}
    both = [{**side, "translator": each} for each in "AB"]
    about = {"splits": {"test": {"en": side, "de": {"references": both}}}}
    fetch_corpus("c", about, tmp_path / "raw")
    rows = RawSplit(tmp_path / "raw" / "manifest.json", "test", ("en", "de"))
    assert list(rows.rows()) == [
        ("Salt & &lt;", "Salz A", "Salz B"), ("One\ntwo", "", "Zwei B"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (sgm("<seg id=1>a</seg>")[:-28], "the file ends within segment 1 of document d"),
        (sgm("<seg>a</seg>"), "segments with an id, in documents with a docid, found <seg>"),
        (sgm("<seg id=1>a</seg>", head="<doc>"), "with a docid, found <seg id=1>"),
        (sgm("<seg id=1>a<seg id=2>b</seg>"), "expected closed segments"),
        (sgm("<seg id=1>a</seg><seg id=1>b</seg>"), "has segment 1 of document d twice$"),
        (sgm(), "expected segments, found none"),
        (WMT, 'found <seg id="1">; .* the format wmt'),
        ("<!DOCTYPE html><title>Moved</title>", "expected segments, found none"),
    ],
)
def test_broken_test_sets_are_refused(text, content, words):
    check(text(content, format="sgm"), f":.*{words}")


FOUR = b"one\ntwo\nthree\nfour\n"


def zipped(*members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return out.getvalue()


def lines(found):
    return list(found.lines())


def test_f16_members_of_a_zip(text):
    good = zipped(("../up", b"x"), ("in/t", FOUR), ("in/", b""))
    assert lines(text(good, "a.zip", member="in/t")) == ["one", "two", "three", "four"]
    link = zipfile.ZipInfo("t")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.warns(UserWarning, match="Duplicate name"):
        twice = zipped(("t", FOUR), ("t", b"other\n"))
    locked = bytearray(zipped(("t", FOUR)))
    for place in (6, locked.index(b"PK\x01\x02") + 8):
        locked[place] |= 1
    for content, member, words in (
        (good, "t", r"a.zip: expected a member t, found \.\./up, in/t, in/"),
        (good, "in/", "expected in/ to be a plain file"),
        (zipped((link, b"/etc/passwd")), "t", "expected t to be a plain file"),
        (twice, "t", "more than one t"),
        (bytes(locked), "t", r"a.zip .t.: cannot be unpacked: .*password required"),
    ):
        with pytest.raises(UserError, match=words):
            lines(text(content, "a.zip", member=member))


def test_f15_a_damaged_zip(text):
    good = zipped(("t", FOUR * 1000))
    for content in (good[:-30], b"<html>", good[:40]):
        with pytest.raises(UserError, match="a.zip .t.: damaged, cut short"):
            lines(text(content, "a.zip", member="t"))
    place = good.index(b"PK\x01\x02") + 16
    with pytest.raises(UserError, match="damaged, .*Bad CRC-32"):
        lines(text(good[:place] + b"\0\0\0\0" + good[place + 4 :], "a.zip", member="t"))


def test_a_member_may_be_packed_itself(text):
    packed = gzip.compress(FOUR)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in (("./t.gz", packed), ("cut.gz", packed[:-9])):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    for name, content in (("a.tar", out.getvalue()), ("a.zip", zipped(("t.gz", packed)))):
        assert len(lines(text(content, name, member="t.gz"))) == 4
    with pytest.raises(UserError, match=r"a.tar .cut.gz.: damaged, cut short"):
        lines(text(out.getvalue(), "a.tar", member="cut.gz"))


LINKS = (
    '<cesAlign><linkGrp fromDoc="en/1.gz" toDoc="ru/1.gz"><link xtargets="1;1" overlap="0.95"/>'
    '<link xtargets=";2"/><link xtargets="2 3;3"/></linkGrp>'
    '<linkGrp fromDoc="en/2.gz" toDoc="ru/2.gz"><link xtargets="1;1" overlap="0.5"/></linkGrp>'
    "</cesAlign>"
)
IDS = "en/1.gz\tru/1.gz\t1\t1\nen/1.gz\tru/1.gz\t2 3\t3\nen/2.gz\tru/2.gz\t1\t1\n"


def test_overlaps_of_subtitles(text):
    links = text(LINKS, "links.xml")
    assert list(overlaps(text(IDS, "ids"), links)) == [0.95, 0.0, 0.5]
    strange = IDS.replace("2 3\t3", "2\t3")
    told = "ids:2: expected the link of en/1.gz ru/1.gz 2 3 in links.xml, found none"
    with pytest.raises(UserError, match=told):
        list(overlaps(text(strange, "ids"), links))


@pytest.mark.parametrize(("count", "fits"), [(1, False), (2, True), (3, False)])
def test_ids_of_another_release_are_refused(tmp_path, count, fits):
    files = {"t.en": "a\nb\n", "t.ru": "A\nB\n", "l.xml": LINKS}
    files["i.ids"] = "".join(IDS.splitlines(keepends=True)[:count])
    own = {name: {"path": str(tmp_path / name)} for name in files}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    overlap = {"at_least": 0.9, "ids": own["i.ids"], "links": own["l.xml"]}
    about = {"splits": {"train": {"en": own["t.en"], "ru": own["t.ru"]}}}
    fetch_corpus("c", about | {"overlap": {"train": overlap}}, tmp_path / "raw")
    split = RawSplit(tmp_path / "raw" / "manifest.json", "train", ("en", "ru"))
    if fits:
        assert list(split.rows()) == [("a", "A")]
        assert split.left_out == {"overlap": 1}
        return
    with pytest.raises(UserError, match=r"t\.en, .*t\.ru: .*i\.ids"):
        list(split.rows())
