"""What every head of a model attends to: one pass over a text, one over each treebank.

Attention weights live for one layer of one batch; only sums are kept.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from headcount.base.addresses import Head
from headcount.base.files import write_csv, write_json
from headcount.base.head_values import COLUMNS, head_rows
from headcount.base.settings.roles import RolesSettings
from headcount.data.batches import ParallelText, in_order
from headcount.data.lines import clean_lines, write_lines
from headcount.data.trees import AlignedTree, read_aligned
from headcount.data.vocabulary import Vocabulary
from headcount.heads.attention_map import sentence_attention
from headcount.heads.head_measures import (
    POSITION_COLUMNS,
    Confidence,
    Positions,
    RareWords,
    views,
)
from headcount.heads.syntax import SYNTAX_COLUMNS, Syntax, best_offsets
from headcount.model.machine import batches_of
from headcount.model.observed import watch_attention
from headcount.model.transformer import Transformer, first_device
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

FILES = ("attention.csv", "positions.csv", "syntax.csv", "sentences.jsonl", "roles.json")
"""What one job writes, in one folder."""
MAPS = 3
LONGEST_MAP = 14
"""Sentences whose attention is kept, and the subwords they may have."""

Done = Callable[[int], object]


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
    the share of each relative position; `syntax.csv` the accuracies on each treebank;
    `sentences.jsonl` the attention of every head on the first sentences that are short;
    `roles.json` counts, seconds and `origin`. A pruned model's heads keep their addresses in the
    original. `trees` are files that scripts/trees.py wrote. Raises UserError where the dev text is
    empty or the model knows other words.
    """
    folder.check(pair)
    words = pair.vocabularies()
    text = pair.first_pairs("dev", settings.sentences)
    counts = _train_counts(pair, words[0])
    treebanks = {path.stem: read_aligned(path)[: settings.sentences] for path in trees}
    model = folder.load(settings.device)
    begun = time.perf_counter()
    sizes = {name: len(found) for name, found in treebanks.items()}
    total = len(text) + sum(sizes.values())
    budget = batches_of("resources", settings.batch_tokens)
    with budget, tqdm(total=total, unit="sentence", disable=None) as bar:
        roles = text_roles(model, text, counts, settings, bar.update)
        syntax = [
            (name, measure_syntax(model, found, words[0], settings, bar.update))
            for name, found in treebanks.items()
        ]
    seconds = time.perf_counter() - begun
    heads = folder.original_heads(model.grid)
    values = roles.confidence.means() | roles.rare.shares()
    write_csv(out / "attention.csv", COLUMNS, head_rows(heads, values))
    rows = roles.positions.rows(heads)
    write_csv(out / "positions.csv", POSITION_COLUMNS, (row.values() for row in rows))
    rows = [row for treebank, measured in syntax for row in measured.rows(heads, treebank)]
    write_csv(out / "syntax.csv", SYNTAX_COLUMNS, (row.values() for row in rows))
    sentences = _sentences(model, text, words, heads)
    lines = (json.dumps(sentence, ensure_ascii=False) for sentence in sentences)
    write_lines(out / "sentences.jsonl", lines)
    facts = {"sentences": len(text), "rare_sentences": roles.rare.sentences, "treebanks": sizes}
    write_json(out / "roles.json", facts | {"seconds": round(seconds, 2), "provenance": origin})


class TextRoles(NamedTuple):
    """What heads do on a parallel text."""

    confidence: Confidence
    positions: Positions
    rare: RareWords


@torch.inference_mode()
def text_roles(
    model: Transformer,
    text: ParallelText,
    counts: Tensor,
    settings: RolesSettings,
    done: Done = lambda sentences: None,
) -> TextRoles:
    """Read a whole text once, references as targets; `done` is told sentences finished.

    `counts`: how often each source id occurs in the training text, [vocabulary].
    """
    grid, device = model.eval().grid, first_device(model)
    rare = RareWords(grid, counts.to(device), settings)
    roles = TextRoles(Confidence(grid), Positions(grid, text.longest), rare)
    seen = {}  # the batch's views

    def add(kind: str, layer: int, weights: Tensor) -> None:
        roles.confidence.add(kind, layer, weights, seen[kind])
        if kind != "dec_enc":  # there, positions of two languages would be compared
            roles.positions.add(kind, layer, weights, seen[kind])
        if kind == "enc_self":
            rare.add(layer, weights, seen[kind])

    with watch_attention(model, add):
        for batch in in_order(text, settings.batch_tokens, device):
            seen.update(views(batch))
            roles.positions.start(seen)
            rare.start(batch.src, seen["enc_self"])
            model.decode(batch.tgt_in, model.encode(batch.src))
            done(len(batch.indices))
    return roles


@torch.inference_mode()
def measure_syntax(
    model: Transformer,
    trees: list[AlignedTree],
    words: Vocabulary,
    settings: RolesSettings,
    done: Done = lambda sentences: None,
) -> Syntax:
    """How often every encoder head finds every relation on one treebank."""
    syntax = Syntax(model.grid, best_offsets(trees, settings.relations))
    sources = [words.ids(piece for token in tree.pieces for piece in token) for tree in trees]
    # A target is needed to make batches; encoding alone reads none.
    text = ParallelText(sources, [[] for _ in sources])
    with watch_attention(model.eval(), lambda kind, layer, weights: syntax.add(layer, weights)):
        for batch in in_order(text, settings.batch_tokens, first_device(model)):
            of_batch = [trees[number] for number in batch.indices]
            syntax.start(of_batch, batch.indices, batch.src.device)
            model.encode(batch.src)
            done(len(batch.indices))
    return syntax


def _train_counts(pair: PairFolder, words: Vocabulary) -> Tensor:
    """How often each source id is in the training text, [vocabulary]."""
    lines = filter(None, clean_lines(pair.texts("train")[0]))
    ids = np.fromiter((i for line in lines for i in words.ids(line.split(" "))), dtype=np.int64)
    return torch.from_numpy(np.bincount(ids, minlength=len(words)))


def _sentences(
    model: Transformer,
    text: ParallelText,
    words: tuple[Vocabulary, Vocabulary],
    names: Sequence[Head],
) -> Iterator[dict[str, Any]]:
    """What every head does on the first sentences that are short enough."""
    pairs = zip(text.src, text.tgt, strict=True)
    short = (pair for pair in pairs if len(pair[0]) <= LONGEST_MAP)
    for ids in islice(short, MAPS):
        pieces = words[0].pieces(ids[0]), words[1].pieces(ids[1])
        yield sentence_attention(model, ids, pieces, names)
