"""Files of strangers are read or refused in plain words. One example for every fault found."""

import gzip
import json
import shutil
import tarfile
from pathlib import Path

import pytest
from hostile import (
    EDITS,
    FORMATS,
    PACKED,
    TEXTS,
    changed,
    read_archive,
    read_model,
    read_text,
    tried,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.base.errors import UserError
from headcount.base.settings.runs import expand
from headcount.data.sentencepieces import TOKENIZER_UNIT, UNIT, Marks, make_pieces
from headcount.data.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    made = {}

    def folder(kind):
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp(kind)
            FORMATS[kind][0](made[kind])
        return made[kind]

    return folder


@pytest.mark.parametrize("kind", ["archives", "yaml", "texts", "model", "pieces"])
def test_changed_files_are_read_or_refused(real, tmp_path, kind):
    names = sorted(path.name for path in real(kind).iterdir())
    work = Path(shutil.copytree(real(kind), tmp_path / "folder"))

    @settings(max_examples=20, derandomize=True)
    @given(st.sampled_from(names), EDITS)
    def check(name, edits):
        (work / name).write_bytes(changed(name, (real(kind) / name).read_bytes(), edits))
        tried(FORMATS[kind][1], work, name)
        shutil.copy(real(kind) / name, work)
        assert [path.name for path in tmp_path.iterdir()] == ["folder"]

    check()


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("name", PACKED)
def test_whole_archives_are_read_or_their_links_refused(tmp_path, kind, name):
    """So that the changed ones above begin with what works."""
    path = tmp_path / f"{kind}-{name}"
    path.write_bytes(PACKED[name](TEXTS[kind].encode()))
    assert tried(read_archive, tmp_path, path.name) == (name != "u.tar")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("scores.json", "[" * 100_000),
        ("scores.json", json.dumps([{"mt": 1, "COMET": 1}] * 3)),
        ("scores.json", json.dumps([{"COMET": 10**400}] * 3)),
        ("scores.csv", f"sentence,score\n{'1' * 5000},0\n"),
        ("scores.csv", f"sentence,score\n{'x' * 200_000},0\n"),
        ("heads.csv", f"kind,layer,head,statistic,value\n{'x' * 200_000},0,0,gate,1\n"),
    ],
)
def test_odd_scores_are_refused(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=str(tmp_path / name)):
        read_text(tmp_path, name)


def test_a_table_in_another_encoding_is_refused(tmp_path):
    (tmp_path / "heads.csv").write_bytes(
        "kind,layer,head,statistic,value\nä,0,0,g,1".encode("latin-1")
    )
    with pytest.raises(UserError, match="heads.csv: damaged"):
        read_text(tmp_path, "heads.csv")


DEEP = "<hi>" * 3000 + "x" + "</hi>" * 3000
HOSTILE = {
    "tmx-deep.txt": f"<tmx><tu><tuv xml:lang='de'><seg>{DEEP}</seg></tuv></tu></tmx>",
    "sgm-open.txt": f"<doc docid='d'><seg id='1'>{'<![CDATA[' * 30_000}</seg></doc>",
    "sgm-comments.txt": f"{'<!--' * 50_000}<doc docid='d'><seg id='1'>a</seg></doc>",
    "sgm-names.txt": f"<doc {'x' * 50_000} docid='d'><seg id='1'>a</seg></doc>",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_marked_up_text_takes_no_time_or_depth(tmp_path, name):
    """All took minutes, or too many calls in calls; only the depth is a fault of the file."""
    (tmp_path / name).write_text(HOSTILE[name])
    assert tried(read_archive, tmp_path, name) == name.startswith("sgm")


def test_marked_sections_and_comments_end_at_their_marks(tmp_path):
    from headcount.data.lines import FoundText
    from headcount.data.pairs import read_sentences

    text = "<doc docid='d'><!-- <seg id='0'>no</seg> --><seg id='1'>&lt;<![CDATA[&lt;]]>&gt;</seg>"
    text += "<!-- <seg id='2'>&amp;<![CDATA[</seg></doc>"
    (tmp_path / "t").write_text(text)
    assert [*read_sentences(FoundText(tmp_path / "t", format="sgm"))] == ["<&lt;>", "&<![CDATA["]


def header(kind: bytes, size: int) -> bytes:
    info = tarfile.TarInfo("d/t")
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


LONG = (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME)
ARCHIVES = {
    "long names": [gzip.compress(header(kind, 2**34) + bytes(600)) for kind in LONG],
    "negative": [gzip.compress(header(kind, -1) + bytes(600)) for kind in LONG],
    "digits": [
        gzip.compress(header(tarfile.XHDTYPE, 5120) + (b"9" * 5000 + b" a=b\n").ljust(5120))
    ],
}


@pytest.mark.parametrize("kind", ARCHIVES)
def test_archives_with_odd_headers_are_refused(tmp_path, kind):
    for content in ARCHIVES[kind]:
        (tmp_path / "plain-t.tgz").write_bytes(content)
        with pytest.raises(UserError, match="plain-t.tgz .*damaged"):
            read_archive(tmp_path, "plain-t.tgz")


def test_archives_of_very_many_members_are_refused(tmp_path, monkeypatch):
    from headcount.data import lines

    monkeypatch.setattr(lines, "_MOST_MEMBERS", 3)
    (tmp_path / "plain-t.tgz").write_bytes(PACKED["t.tgz"](b"a\n"))
    with pytest.raises(UserError, match="more than 3 members"):
        read_archive(tmp_path, "plain-t.tgz")


def test_a_zip_whose_directory_lies_before_its_start_is_refused(tmp_path):
    content = PACKED["v.zip"](b"a\n")
    at = content.rindex(b"PK\5\6") + 16  # the offset of the directory
    far = int.from_bytes(content[at : at + 4], "little") + 500
    (tmp_path / "plain-v.zip").write_bytes(
        content[:at] + far.to_bytes(4, "little") + content[at + 4 :]
    )
    with pytest.raises(UserError, match="damaged"):
        read_archive(tmp_path, "plain-v.zip")


def test_combinations_of_runs_are_counted_before_they_are_made():
    assert len(expand({"a": list(range(10)), "b": list(range(100))})) == 1000
    with pytest.raises(ValueError, match="at most 1000 runs"):
        expand({name: list(range(100)) for name in "abcdef"})


FALSE_SIZES = [
    {"src_size": 10**12, "joint": False},
    {"tgt_size": 10**12},
    {"d_model": 10**6, "position_table": 10**6},
    {"d_ff": 10**6},
]


@pytest.mark.parametrize("sizes", FALSE_SIZES)
def test_false_sizes_of_a_model_take_no_memory(real, tmp_path, sizes):
    work = Path(shutil.copytree(real("model"), tmp_path / "m"))
    facts = json.loads((work / "model.json").read_text())
    for key, value in sizes.items():
        (facts["model"] if key in facts["model"] else facts)[key] = value
    (work / "model.json").write_text(json.dumps(facts))
    with pytest.raises(UserError, match="has shape|parameters"):
        read_model(work, "model.json")


def test_codes_with_a_faulty_line_are_refused(real, tmp_path):
    """The library would leave the process."""
    work = Path(shutil.copytree(real("model"), tmp_path / "m"))
    with (work / "src.codes").open("a") as codes:
        codes.write("a b c\n")
    with pytest.raises(UserError, match="a pair of pieces"):
        read_model(work, "src.codes")


@pytest.mark.parametrize("header", ["#version: 1000000", "#version: 0.1", "t h"])
def test_codes_of_another_version_are_refused(header, real, tmp_path):
    """The library would refuse the first, when it cuts a word, and read the others another way."""
    work = Path(shutil.copytree(real("model"), tmp_path / "m"))
    codes = (work / "src.codes").read_text().partition("\n")[2]
    (work / "src.codes").write_text(f"{header}\n{codes}")
    with pytest.raises(UserError, match="#version: 0.2"):
        read_model(work, "src.codes")


def tokenizer(**parts) -> bytes:
    """A tokenizer.json of two pieces."""
    empty = dict.fromkeys(
        ["truncation", "padding", "normalizer", "pre_tokenizer", "post_processor"]
    )
    model = {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0]]}
    content = {"version": "1.0", "added_tokens": [], "decoder": None, "model": model}
    return json.dumps(content | empty | parts).encode()


BAD_MAP = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}  # the library panics
NO_UNKNOWN = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "?"}


@pytest.mark.parametrize(
    ("unit", "model", "marks", "text"),
    [
        (TOKENIZER_UNIT, tokenizer(normalizer=BAD_MAP), {}, "a"),
        (TOKENIZER_UNIT, tokenizer(model=NO_UNKNOWN), {}, "b"),
        (TOKENIZER_UNIT, tokenizer(), {}, "a"),  # no decoder, so that nothing can be joined
        (UNIT, b"", {}, "a"),
        (UNIT, b"", {"words": {"a": "(("}}, "a"),
    ],
)
def test_models_of_pieces_that_cannot_work_are_refused(unit, model, marks, text):
    with pytest.raises(UserError, match="expected a whole"):
        pieces = make_pieces(unit, "en", model, Vocabulary([]), Marks(**marks))
        pieces.word(pieces.pieces(text))


def test_more_words_than_the_model_has_are_refused(real, tmp_path):
    """Their checksum is in a description that a stranger wrote, too."""
    work = Path(shutil.copytree(real("model"), tmp_path / "m"))
    with (work / "src.vocab").open("a") as words:
        words.write("one_more 1\n")
    with pytest.raises(UserError, match="src.vocab: the model has"):
        read_model(work, "src.vocab")
