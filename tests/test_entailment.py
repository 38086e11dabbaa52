"""Labelled sentence pairs as MultiNLI has them: what is read, and what is refused."""

import json

import pytest

from headcount.base.errors import UserError
from headcount.data.entailment import Pair, read_pairs

ROWS = [
    {"index": "0", "sentence1": 'He said "no', "sentence2": "He spoke", "gold_label": "entailment"},
    {"index": "1", "sentence1": "a", "sentence2": "b", "gold_label": "-"},
    {"index": "2", "sentence1": "c d", "sentence2": "e", "gold_label": "neutral"},
]
PAIRS = [Pair('He said "no', "He spoke", "entailment"), Pair("c d", "e", "neutral")]


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
    with pytest.raises(UserError, match=r"test\.tsv:2: expected sentence1, .* found no gold_label"):
        read_pairs(path)
    path = write(tmp_path, [{**ROWS[0], "gold_label": " "}], "jsonl")
    with pytest.raises(UserError, match=r"dev\.jsonl:1: .* found no gold_label"):
        read_pairs(path)
    with pytest.raises(UserError, match="expected labelled sentence pairs, found none"):
        read_pairs(write(tmp_path, ROWS[1:2], "tsv"))


def test_f09_damaged_lines_are_named(tmp_path):
    path = tmp_path / "dev.jsonl"
    path.write_text('{"sentence1": "a"\n')
    with pytest.raises(UserError, match=r"dev\.jsonl:1: not a JSON object"):
        read_pairs(path)
    path.write_text("[1]\n")
    with pytest.raises(UserError, match=r"dev\.jsonl:1: expected a JSON object, found \[1\]"):
        read_pairs(path)
