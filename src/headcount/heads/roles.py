"""Roles of all heads of a model: one pass over a text, one over each treebank.

Attention weights live for one layer of one batch. Only sums are kept.
"""

import json
import time
from collections.abc import Sequence
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
from headcount.base.settings.heads import RolesSettings
from headcount.data.batches import ParallelText, in_order
from headcount.data.lines import clean_lines, write_lines
from headcount.data.trees import AlignedTree, read_aligned
from headcount.data.vocabulary import Vocabulary
from headcount.heads.attention_map import sentence_attention
from headcount.heads.drawn_text import Done
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
"""Confidence, entropy and rare words; relative positions; syntax; attention on short sentences."""
MAPS = 3
LONGEST_MAP = 14
"""Sentences whose attention is kept, and the subwords they may have."""


def write_roles(
    folder: ModelFolder,
    pair: PairFolder,
    trees: list[Path],
    settings: RolesSettings,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Measure the roles of all heads and write `FILES` into the folder `out`.

    Heads of a pruned model have their addresses in the original. `trees` are files of
    scripts/trees.py. Raises UserError if the dev text is empty or the model has another vocabulary.
    """
    folder.check(pair)
    words = pair.vocabularies()
    text = pair.first_pairs("dev", settings.sentences)
    counts = _train_counts(pair, words[0])
    treebanks = {path.stem: read_aligned(path)[: settings.sentences] for path in trees}
    model = folder.load(settings.device)
    heads, begun = folder.original_heads(model.grid), time.perf_counter()
    sizes = {name: len(treebank) for name, treebank in treebanks.items()}
    total = len(text) + sum(sizes.values())
    budget = batches_of("resources", settings.batch_tokens)
    with budget, tqdm(total=total, unit="sentence", disable=None) as bar:
        roles = text_roles(model, text, counts, settings, bar.update)
        syntax = []
        for name, treebank in treebanks.items():
            measured = measure_syntax(model, treebank, words[0], settings, bar.update)
            syntax += measured.rows(heads, name)
    seconds = time.perf_counter() - begun
    values = roles.confidence.means() | roles.rare.shares()
    write_csv(out / "attention.csv", COLUMNS, head_rows(heads, values))
    write_csv(out / "positions.csv", POSITION_COLUMNS, roles.positions.rows(heads))
    write_csv(out / "syntax.csv", SYNTAX_COLUMNS, syntax)
    write_lines(out / "sentences.jsonl", _sentences(model, text, words, heads))
    facts = {"sentences": len(text), "rare_sentences": roles.rare.sentences, "treebanks": sizes}
    write_json(out / "roles.json", facts | {"seconds": round(seconds, 2), "provenance": origin})


class TextRoles(NamedTuple):
    """Roles of heads on a parallel text."""

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
    """Return roles from one pass over a text, references as targets.

    `counts`: occurrences of each source id in the training text, [vocabulary].
    """
    grid, device = model.eval().grid, first_device(model)
    rare = RareWords(grid, counts.to(device), settings)
    roles = TextRoles(Confidence(grid), Positions(grid, text.longest), rare)
    batch_views = {}

    def add(kind: str, layer: int, weights: Tensor) -> None:
        view = batch_views[kind]
        roles.confidence.add(kind, layer, weights, view)
        if kind != "dec_enc":  # there, positions of two languages would be compared
            roles.positions.add(kind, layer, weights, view)
        if kind == "enc_self":
            rare.add(layer, weights, view)

    with watch_attention(model, add):
        for batch in in_order(text, settings.batch_tokens, device):
            batch_views.update(views(batch))
            roles.positions.start(batch_views)
            rare.start(batch.src, batch_views["enc_self"])
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
    """Return the accuracy of every encoder head for every relation on one treebank."""
    syntax = Syntax(model.grid, best_offsets(trees, settings.relations))
    sources = [words.ids(piece for token in tree.pieces for piece in token) for tree in trees]
    text = ParallelText(sources, [[]] * len(sources))  # encoding reads no target
    with watch_attention(model.eval(), lambda kind, layer, weights: syntax.add(layer, weights)):
        for batch in in_order(text, settings.batch_tokens, first_device(model)):
            syntax.start([trees[n] for n in batch.indices], batch.indices, batch.src.device)
            model.encode(batch.src)
            done(len(batch.indices))
    return syntax


def _train_counts(pair: PairFolder, words: Vocabulary) -> Tensor:
    """Return the occurrences of each source id in the training text, [vocabulary]."""
    lines = filter(None, clean_lines(pair.texts("train")[0]))
    ids = np.fromiter((i for line in lines for i in words.ids(line.split(" "))), dtype=np.int64)
    return torch.from_numpy(np.bincount(ids, minlength=len(words)))


def _sentences(
    model: Transformer,
    text: ParallelText,
    words: tuple[Vocabulary, Vocabulary],
    names: Sequence[Head],
) -> list[str]:
    """Return lines of JSON: the attention of every head on the first short sentences."""
    pairs = zip(text.src, text.tgt, strict=True)
    short = islice((pair for pair in pairs if len(pair[0]) <= LONGEST_MAP), MAPS)
    maps = [
        sentence_attention(model, (src, tgt), (words[0].pieces(src), words[1].pieces(tgt)), names)
        for src, tgt in short
    ]
    return [json.dumps(sentence, ensure_ascii=False) for sentence in maps]
