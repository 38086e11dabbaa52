"""Sentence pairs with a label, as MultiNLI publishes them: tab-separated or JSON lines."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from headcount.base.errors import UserError
from headcount.base.files import write_json, write_text
from headcount.base.random_streams import Stream
from headcount.base.settings.corpora import ENTAILMENT
from headcount.base.settings.pretrained import EntailmentSettings
from headcount.data.lines import FoundText
from headcount.data.manifest import find_file, read_manifest

COLUMNS = ("sentence1", "sentence2", "gold_label")


class Example(NamedTuple):
    """Premise, hypothesis, and the name of their relation."""

    first: str
    second: str
    label: str


def read_pairs(text: FoundText, limit: int | None = None) -> list[Example]:
    """Return the first `limit` pairs of a .tsv, .txt or .jsonl, without undecided ones."""
    pairs: list[Example] = []
    for number, row in _rows(text):
        cells = [row.get(column) for column in COLUMNS]
        for column, cell in zip(COLUMNS, cells, strict=True):
            if not isinstance(cell, str) or (column == "gold_label" and not cell.strip()):
                wanted = ", ".join(COLUMNS)
                raise UserError(f"{text.shown}:{number}: expected {wanted}, found no {column}")
        if cells[2].strip() != "-":  # the label of a pair on which people did not agree
            pairs.append(Example(cells[0], cells[1], cells[2].strip()))
        if limit is not None and len(pairs) == limit:
            break
    if not pairs:
        raise UserError(f"{text.shown}: expected labelled sentence pairs, found none")
    return pairs


def write_parts(manifest: Path, settings: EntailmentSettings, folder: Path) -> None:
    """Write train, dev, matched and mismatched of a corpus as .jsonl, and counts as parts.json."""
    listed = read_manifest(manifest).get("entailment", {})
    parts = {}
    for split in ENTAILMENT:
        if split not in listed:
            raise UserError(f"{manifest}: expected labelled pairs {split!r}, found {list(listed)}")
        parts[split] = read_pairs(find_file(manifest, listed[split]))
    whole, dev, train = parts["train"], settings.dev_pairs, settings.train_pairs
    if dev + (train or 1) > len(whole):
        raise UserError(
            f"classifiers: expected {dev} pairs for dev and {train or 'some'} to train, found "
            f"{len(whole)} decided training pairs; lower dev_pairs or train_pairs"
        )
    order = Stream.ENTAILMENT.generator(1).permutation(len(whole))
    last = None if train is None else dev + train
    for part, places in (("train", order[dev:last]), ("dev", order[:dev])):
        parts[part] = [whole[place] for place in sorted(places)]
    for part, pairs in parts.items():
        rows = (json.dumps(dict(zip(COLUMNS, pair, strict=True))) for pair in pairs)
        write_text(folder / f"{part}.jsonl", "".join(f"{row}\n" for row in rows))
    write_json(folder / "parts.json", {part: len(pairs) for part, pairs in parts.items()})


def _rows(text: FoundText) -> Iterator[tuple[int, dict]]:
    """Yield line number and cells of each row. Quotation marks are part of the sentences."""
    filled = ((n, line) for n, line in enumerate(text.lines(), start=1) if line.strip())
    if re.search(r"\.jsonl(\.\w+)?$", text.member or text.shown):
        yield from ((number, _object(line, f"{text.shown}:{number}")) for number, line in filled)
        return
    columns = next(filled, (0, ""))[1].split("\t")
    for number, line in filled:
        cells = line.split("\t")
        if len(cells) > len(columns):
            wanted = f"expected at most {len(columns)} cells, as in the header"
            raise UserError(f"{text.shown}:{number}: {wanted}, found {len(cells)}")
        yield number, dict(zip(columns, cells, strict=False))


def _object(line: str, where: str) -> dict:
    try:
        row = json.loads(line)
        json.dumps(row, ensure_ascii=False).encode()  # JSON can spell half a character
    except (ValueError, RecursionError) as fault:
        raise UserError(f"{where}: not a JSON object ({fault})") from None
    if not isinstance(row, dict):
        raise UserError(f"{where}: expected a JSON object, found {line.strip()[:60]}")
    return row
