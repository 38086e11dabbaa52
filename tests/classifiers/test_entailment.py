"""Labelled sentence pairs as MultiNLI has them: what is read, and what is refused."""

import json
import zipfile

import pytest

from headcount.base.errors import UserError
from headcount.base.settings.pretrained import EntailmentSettings
from headcount.data.entailment import Example, write_parts
from headcount.data.entailment import read_pairs as read
from headcount.data.lines import FoundText
from headcount.data.manifest import write_manifest


def read_pairs(path, limit=None):
    return read(FoundText(path), limit)


ROWS = [
    {"index": "0", "sentence1": 'He said "no', "sentence2": "He spoke", "gold_label": "entailment"},
    {"index": "1", "sentence1": "a", "sentence2": "b", "gold_label": "-"},
    {"index": "2", "sentence1": "c d", "sentence2": "e", "gold_label": "neutral"},
]
PAIRS = [Example('He said "no', "He spoke", "entailment"), Example("c d", "e", "neutral")]


def write(folder, rows, end: str):
    """The rows in a file; in .tsv with columns in this order, as they are in the first row."""
    path = folder / f"dev.{end}"
    if end == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        lines = ["\t".join(ROWS[0]), *("\t".join(row.values()) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("end", ["tsv", "txt", "jsonl"])
def test_pairs_that_people_agree_on(tmp_path, end):
    path = write(tmp_path, ROWS, end)
    assert read_pairs(path) == PAIRS
    assert read_pairs(path, limit=1) == PAIRS[:1]


def test_f09_pairs_without_labels_are_refused(tmp_path):
    # MultiNLI's test sets are published without them.
    path = tmp_path / "test.tsv"
    path.write_text("index\tsentence1\tsentence2\n0\ta\tb\n")
    with pytest.raises(UserError, match=r"test\.tsv:2: .*gold_label"):
        read_pairs(path)
    path = write(tmp_path, [{**ROWS[0], "gold_label": " "}], "jsonl")
    with pytest.raises(UserError, match=r"dev\.jsonl:1: .*gold_label"):
        read_pairs(path)
    with pytest.raises(UserError, match="expected labelled sentence pairs, found none"):
        read_pairs(write(tmp_path, ROWS[1:2], "tsv"))


def test_f20_x19_encodings_are_told_with_line_and_byte(tmp_path):
    path = write(tmp_path, ROWS, "tsv")
    text = path.read_text()
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert read_pairs(path) == PAIRS
    path.write_bytes(text.replace("He spoke", "caf\u00e9").encode("latin-1"))
    with pytest.raises(UserError, match=r"dev\.tsv:2: byte offset 54"):
        read_pairs(path)
    path.write_bytes(text.encode("utf-16"))
    with pytest.raises(UserError, match=r"dev\.tsv:1: byte offset 0"):
        read_pairs(path)


def test_x20_rows_are_lines_and_cells_stand_between_tabs(tmp_path):
    """Quotation marks, other line ends inside a sentence, CRLF; a row that is too short or long."""
    path = tmp_path / "dev.tsv"
    head, good = "gold_label\tsentence1\tsentence2\tlabel1", 'neutral\t"a\u2028b\x85\tc"\t""'
    path.write_bytes(f"{head}\r\n{good}\r\n\r\n".encode())
    assert read_pairs(path) == [Example('"a\u2028b\x85', 'c"', "neutral")]
    path.write_text(f"{head}\nneutral\ta\tb\n")  # label1, which is not read, is missing
    assert read_pairs(path) == [Example("a", "b", "neutral")]
    path.write_text(f"{head}\nneutral\ta\n")
    with pytest.raises(UserError, match=r"dev\.tsv:2: .*sentence2"):
        read_pairs(path)
    path.write_text(f"{head}\nneutral\ta\tb\tneutral\nneutral\ta\tof a tab\tb\tneutral\n")
    with pytest.raises(UserError, match=r"dev\.tsv:3: .* 4 .* 5"):
        read_pairs(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000 + "\n", r"dev\.jsonl:1: "),
        ('{"sentence1": "a"\n', r"dev\.jsonl:1: "),
        ("[1]\n", r"dev\.jsonl:1: "),
        ("", "expected labelled sentence pairs, found none"),
    ],
)
def test_f09_x21_damaged_lines_are_named(tmp_path, text, message):
    path = tmp_path / "dev.jsonl"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        read_pairs(path)


@pytest.fixture
def manifest(tmp_path):
    """40 training pairs, of which people agreed on 30; two test sets in an archive."""
    labels = ("entailment", "neutral", "contradiction", "-")
    rows = [
        {"sentence1": f"a {number}", "sentence2": "b", "gold_label": labels[number % 4]}
        for number in range(40)
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    folder = tmp_path / "raw"
    folder.mkdir()
    (folder / "train").write_text(lines)  # as a file of one's own is named
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        for test in ("matched", "mismatched"):
            archive.writestr(f"x/{test}.jsonl", lines)
    entailment = {"train": {"file": "train", "own": "own/train.jsonl"}} | {
        test: {"file": "all.zip", "member": f"x/{test}.jsonl"} for test in ("matched", "mismatched")
    }
    write_manifest(folder, {"entailment": entailment}, {})
    return folder / "manifest.json"


def test_pairs_for_dev_are_drawn_and_left_out_of_fine_tuning(manifest, tmp_path):
    out = tmp_path / "parts"
    write_parts(manifest, EntailmentSettings(dev_pairs=10), out)
    counts = {"train": 20, "dev": 10, "matched": 30, "mismatched": 30}
    assert json.loads((out / "parts.json").read_text()) == counts
    parts = {part: read_pairs(out / f"{part}.jsonl") for part in counts}
    assert not {*parts["train"]} & {*parts["dev"]}
    assert {*parts["train"], *parts["dev"]} == {*parts["matched"]}
    for part in ("train", "dev"):  # in the order of the corpus, and not its first ones
        places = [int(pair.first.split()[1]) for pair in parts[part]]
        assert places == sorted(places) and places[-1] > 30
    write_parts(manifest, EntailmentSettings(dev_pairs=10, train_pairs=5), tmp_path / "fewer")
    assert read_pairs(tmp_path / "fewer" / "dev.jsonl") == parts["dev"]
    fewer = read_pairs(tmp_path / "fewer" / "train.jsonl")
    assert len(fewer) == 5 and {*fewer} < {*parts["train"]}


def test_f09_too_few_pairs_and_none_at_all_are_refused(manifest, tmp_path):
    with pytest.raises(UserError, match="expected 30 pairs .* found 30"):
        write_parts(manifest, EntailmentSettings(dev_pairs=30), tmp_path / "parts")
    with pytest.raises(UserError, match="expected 10 .* and 21 .* found 30"):
        write_parts(manifest, EntailmentSettings(dev_pairs=10, train_pairs=21), tmp_path / "parts")
    write_manifest(manifest.parent, {}, {})
    with pytest.raises(UserError, match="'train'"):
        write_parts(manifest, EntailmentSettings(), tmp_path / "parts")
    assert not (tmp_path / "parts").exists()
