"""Sentence pairs with a label, as MultiNLI publishes them: tab-separated or JSON lines."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from headcount.base.errors import UserError
from headcount.data.lines import LineTally, read_lines

COLUMNS = ("sentence1", "sentence2", "gold_label")
UNDECIDED = "-"
"""The label of a pair on which people did not agree."""


class Example(NamedTuple):
    """Premise, hypothesis, and the name of their relation."""

    first: str
    second: str
    label: str


def read_pairs(path: Path, limit: int | None = None, member: str | None = None) -> list[Example]:
    """The pairs of a .tsv, .txt or .jsonl that people agreed on, the first `limit` of them.

    The file may be the `member` of an archive. Lines are those of `read_lines`. Raises UserError,
    naming the line, where a sentence or the label is missing, where there is a cell too many, and
    for a file without any pair.
    """
    found: list[Example] = []
    for number, row in _rows(path, member):
        cells = [row.get(column) for column in COLUMNS]
        for column, cell in zip(COLUMNS, cells, strict=True):
            if not isinstance(cell, str) or (column == "gold_label" and not cell.strip()):
                raise UserError(
                    f"{path}:{number}: expected {', '.join(COLUMNS)}, found no {column}; a "
                    "classifier is tested on labelled pairs, such as MultiNLI's dev_matched"
                )
        if cells[2].strip() != UNDECIDED:
            found.append(Example(cells[0], cells[1], cells[2].strip()))
        if limit is not None and len(found) == limit:
            break
    if not found:
        raise UserError(f"{path}: expected labelled sentence pairs, found none")
    return found


def _rows(path: Path, member: str | None) -> Iterator[tuple[int, dict]]:
    """Line number and cells of each row."""
    lines = enumerate(read_lines(path, member, LineTally()), start=1)
    filled = ((number, line) for number, line in lines if line.strip())
    is_json = Path(member or path).suffix == ".jsonl"
    columns = [] if is_json else next(filled, (0, ""))[1].split("\t")
    for number, line in filled:
        if not columns:
            yield number, _object(line, f"{path}:{number}")
            continue
        cells = line.split("\t")  # quotation marks are part of the sentences
        if len(cells) > len(columns):
            raise UserError(
                f"{path}:{number}: expected at most {len(columns)} cells, as in the header, found "
                f"{len(cells)}; take the tab out of the sentence"
            )
        yield number, dict(zip(columns, cells, strict=False))


def _object(line: str, where: str) -> dict:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as fault:
        raise UserError(f"{where}: not a JSON object ({fault})") from None
    if not isinstance(found, dict):
        raise UserError(f"{where}: expected a JSON object, found {line.strip()[:60]}")
    return found
