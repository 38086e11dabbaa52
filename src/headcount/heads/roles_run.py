"""Roles of heads from files to files: a model, its dev text and its treebanks in, CSV out."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from tqdm import tqdm

from headcount.base.addresses import Head, HeadGrid
from headcount.base.files import write_csv, write_json
from headcount.base.settings.roles import RolesSettings
from headcount.data.batches import Ids, ParallelText
from headcount.data.lines import clean_lines
from headcount.data.trees import AlignedTree, read_aligned
from headcount.data.vocabulary import Vocabulary
from headcount.heads.attention_map import attention_map
from headcount.heads.roles import TextRoles, count_ids, measure_syntax
from headcount.model.machine import batches_of
from headcount.model.transformer import Transformer
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

VALUE_COLUMNS = ("kind", "layer", "head", "statistic", "value")
POSITION_COLUMNS = (*VALUE_COLUMNS, "offset", "hits", "trials")
SYNTAX_COLUMNS = (
    *(*VALUE_COLUMNS, "treebank", "relation", "direction", "offset", "trials", "hits"),
    *("baseline_hits", "head_only", "baseline_only", "half_trials", "half_hits"),
)
FILES = ("attention.csv", "positions.csv", "syntax.csv", "maps.json", "roles.json")
"""What one job writes, in one folder."""
MAPS = 3
LONGEST_MAP = 14
"""Sentences drawn for the rare-word head, and the subwords they may have."""


def write_roles(
    folder: ModelFolder,
    pair: PairFolder,
    trees: list[Path],
    settings: RolesSettings,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Measure what every head attends to and write `FILES` into the folder `out`.

    `attention.csv` has confidence, entropy and the shares of the rare-word test; `positions.csv`
    the share of each relative position; `syntax.csv` the accuracies on each treebank; `maps.json`
    some sentences as the candidate for the rare-word head sees them, the head of the first layer
    with the largest share; `roles.json` counts, seconds and `origin`. A pruned model's heads keep
    their addresses in the original. `trees` are files that scripts/trees.py wrote. Raises
    UserError where the dev text is empty or the model knows other words.
    """
    folder.check(pair)
    words = pair.vocabularies()
    text = pair.first_pairs("dev", settings.sentences)
    counts = _train_counts(pair, words[0])
    treebanks = {path.stem: read_aligned(path)[: settings.sentences] for path in trees}
    model = folder.load(settings.device)
    begun = time.perf_counter()
    total = len(text) + sum(map(len, treebanks.values()))
    budget = batches_of("roles", settings.batch_tokens)
    with budget, tqdm(total=total, unit="sentence", disable=None) as bar:
        roles = TextRoles(model, text, counts, settings)
        roles.measure(bar.update)
        rows = _syntax_rows(model, treebanks, words[0], settings, bar)
    seconds = time.perf_counter() - begun
    original = dict(zip(model.grid.heads(), folder.original_heads(model.grid), strict=True))
    values = roles.confidence.means() | roles.rare.shares()
    tables = {"attention.csv": (VALUE_COLUMNS, _value_rows(model.grid, values))}
    tables["positions.csv"] = (POSITION_COLUMNS, roles.positions.rows())
    tables["syntax.csv"] = (SYNTAX_COLUMNS, rows)
    for name, (columns, found) in tables.items():
        write_csv(out / name, columns, _as_before_pruning(columns, found, original))
    candidate = _rare_candidate(model.grid, values["rare_two_rarest"])
    maps = _maps(model, text, words, candidate, settings) if candidate else []
    shown = original[candidate]._asdict() if candidate else None
    write_json(out / "maps.json", {"head": shown, "level": "subword", "maps": maps})
    facts = {"sentences": len(text), "rare_sentences": roles.rare.sentences}
    facts |= {"treebanks": {name: len(found) for name, found in treebanks.items()}}
    write_json(out / "roles.json", facts | {"seconds": round(seconds, 2), "provenance": origin})


def _rare_candidate(grid: HeadGrid, shares: np.ndarray) -> Head | None:
    """The head of the first encoder layer with the largest share, if that has one."""
    span = grid.span("enc_self", 0)
    of_layer = shares[span]
    if not len(of_layer) or np.isnan(of_layer).all():
        return None
    return grid.heads()[span.start + int(of_layer.argmax())]


def _maps(
    model: Transformer,
    text: ParallelText,
    words: tuple[Vocabulary, Vocabulary],
    head: Head,
    settings: RolesSettings,
) -> list[dict[str, Any]]:
    """The first sentences that are short enough to be drawn."""
    pairs = zip(text.src, text.tgt, strict=True)
    short = [pair for pair in pairs if len(pair[0]) <= LONGEST_MAP][:MAPS]
    found = []
    for pair in short:
        pieces = tuple(side.pieces(ids) for side, ids in zip(words, pair, strict=True))
        found.append(attention_map(model, pair, pieces, head, settings, "subword"))
    return found


def _train_counts(pair: PairFolder, words: Vocabulary) -> Tensor:
    """How often each source id is in the training text."""
    lines = clean_lines(pair.texts("train")[0])
    return count_ids([_ids(line, words) for line in lines], len(words))


def _ids(line: str, words: Vocabulary) -> Ids:
    return words.ids(line.split(" ")) if line else []


def _syntax_rows(
    model: Transformer,
    treebanks: dict[str, list[AlignedTree]],
    words: Vocabulary,
    settings: RolesSettings,
    bar: tqdm,
) -> list[dict]:
    return [
        row
        for name, trees in treebanks.items()
        for row in measure_syntax(model, trees, words, name, settings, bar.update)
    ]


def _value_rows(grid: HeadGrid, values: dict[str, np.ndarray]) -> Iterable[dict]:
    return [
        head._asdict() | {"statistic": name, "value": float(value)}
        for name, found in values.items()
        for head, value in zip(grid.heads(), found, strict=True)
        if not np.isnan(value)
    ]


def _as_before_pruning(
    columns: tuple[str, ...], rows: Iterable[dict], original: dict[Head, Head]
) -> Iterator[list[Any]]:
    """The cells of these columns, heads by their original addresses."""
    for row in rows:
        head = original[Head(row["kind"], row["layer"], row["head"])]
        cells = {**row, **head._asdict()}
        yield [cells[name] for name in columns]
