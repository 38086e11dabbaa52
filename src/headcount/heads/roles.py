"""Roles of all heads of a model: one pass over a text, one over each treebank.

Attention weights live for one layer of one batch. Only sums are kept.
"""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from headcount.base.addresses import Head, HeadGrid
from headcount.base.files import write_csv, write_json
from headcount.base.head_values import COLUMNS, head_rows
from headcount.base.settings.heads import RolesSettings
from headcount.data.batches import Batch, ParallelText
from headcount.data.lines import clean_lines, write_lines
from headcount.data.trees import AlignedTree, read_aligned
from headcount.data.vocabulary import UNK, Vocabulary
from headcount.heads.attention_map import sentence_attention
from headcount.heads.head_measures import (
    NOWHERE,
    POSITION_COLUMNS,
    AttentionMeasure,
    Confidence,
    Copies,
    Positions,
    RareWords,
    View,
    add_up,
    frequent_limit,
    pointed,
    token_numbers,
    word_attention,
)
from headcount.heads.sinks import Sinks, token_classes
from headcount.model.machine import batches_of
from headcount.model.transformer import Transformer, first_device
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

FILES = ("attention.csv", "positions.csv", "syntax.csv", "sentences.jsonl", "roles.json")
"""Confidence, entropy, rare words, sinks; positions; syntax; attention on short sentences."""
DIRECTIONS = ("to_dependent", "to_governor")
"""The end of an arc at which a head is expected to point. The query is the other end."""
SYNTAX_COLUMNS = (*COLUMNS, "treebank", "relation", "direction", "offset", "trials", "hits")
SYNTAX_COLUMNS += ("baseline_hits", "head_only", "baseline_only", "half_trials", "half_hits")
_HITS = ("hits", "head_only", "baseline_only", "half_hits")  # what is counted by head
Marked = tuple[Sequence[str], Sequence[str]]  # pieces before and after every sentence
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
    words, segmenters = pair.vocabularies(), pair.segmenters()
    marks = segmenters[0].marks
    text = pair.first_pairs("dev", settings.sentences)
    lines = filter(None, clean_lines(pair.texts("train")[0]))
    ids = np.fromiter((i for line in lines for i in words[0].ids(line.split(" "))), dtype=np.int64)
    counts = torch.from_numpy(np.bincount(ids, minlength=len(words[0])))
    treebanks = {path.stem: read_aligned(path)[: settings.sentences] for path in trees}
    model = folder.load(settings.device)
    heads, begun = folder.original_heads(model.grid), time.perf_counter()
    confidence, positions = Confidence(model.grid), Positions(model.grid, text.longest)
    counts = counts.to(first_device(model))
    rare, limit = RareWords(model.grid, counts, settings), frequent_limit(counts, settings)
    copies = Copies(model.grid, counts, limit, _shared_pieces(*words).to(counts.device))
    sides = zip(segmenters, (text.src, text.tgt), strict=True)
    sinks = Sinks(model.grid, [token_classes(*side) for side in sides], text.longest)
    sizes = {name: len(treebank) for name, treebank in treebanks.items()}
    budget, total = settings.batch_tokens, len(text) + sum(sizes.values())
    with (
        batches_of("resources", budget),
        tqdm(total=total, unit="sentence", disable=None) as bar,
    ):
        add_up([confidence, positions, rare, copies, sinks], model, text, budget, bar.update)
        syntax = []
        for name, trees in treebanks.items():
            accuracy = Syntax(model.grid, trees, settings.relations, marks)
            add_up([accuracy], model, sentences_of(trees, words[0], marks), budget, bar.update)
            syntax += accuracy.rows(heads, name)
    seconds = time.perf_counter() - begun
    values, parked = confidence.means() | rare.shares() | sinks.means(), sinks.parked()
    write_csv(out / "attention.csv", COLUMNS, head_rows(heads, values))
    places = positions.rows(heads, "share", ~parked)
    places += sinks.positions.rows(heads, "share_content", parked)
    write_csv(out / "positions.csv", POSITION_COLUMNS, places)
    write_csv(out / "syntax.csv", SYNTAX_COLUMNS, syntax)
    write_lines(out / "sentences.jsonl", _sentences(model, text, words, heads))
    facts = {"sentences": len(text), "rare_sentences": rare.sentences, "treebanks": sizes}
    facts |= copies.best()
    write_json(out / "roles.json", facts | {"seconds": round(seconds, 2), "provenance": origin})


def _shared_pieces(source: Vocabulary, target: Vocabulary) -> Tensor:
    """Return the target id of each source id with the same text, `NOWHERE` without one."""
    ids = target.ids(source.pieces(range(len(source))))
    return torch.tensor([NOWHERE if i == UNK else i for i in ids])


def _sentences(
    model: Transformer,
    text: ParallelText,
    words: tuple[Vocabulary, Vocabulary],
    names: Sequence[Head],
) -> list[str]:
    """Return lines of JSON: the attention of every head on the first short sentences."""
    pairs = zip(text.src, text.tgt, strict=True)
    short = islice((pair for pair in pairs if len(pair[0]) <= LONGEST_MAP), MAPS)
    maps = []
    for pair in short:
        pieces = tuple(side.pieces(ids) for side, ids in zip(words, pair, strict=True))
        maps.append(sentence_attention(model, pair, pieces, names))
    return [json.dumps(sentence, ensure_ascii=False) for sentence in maps]


def best_offsets(trees: Iterable[AlignedTree], relations: list[str]) -> dict[str, int]:
    """Return the most frequent, then nearest relative position of the dependent by relation."""
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    for tree in trees:
        for arc in tree.arcs:
            counts[arc.relation][arc.dependent - arc.governor] += 1
    return {
        relation: max(counts[relation].items(), key=lambda entry: (entry[1], -abs(entry[0])))[0]
        for relation in relations
        if relation in counts
    }


class Syntax(AttentionMeasure):
    """Accuracy of encoder heads for relations over a treebank: Voita et al. 2019, section 5.2.1."""

    kinds = ("enc_self",)

    def __init__(
        self,
        grid: HeadGrid,
        trees: list[AlignedTree],
        relations: list[str],
        marks: Marked = ((), ()),
    ):
        """`marks`: pieces before and after every sentence."""
        super().__init__(grid)
        self._around = [len(side) for side in marks]
        self._trees, self._offsets = trees, best_offsets(trees, relations)
        self._heads = sum(grid.counts["enc_self"])  # they stand first in flat order
        keys = [(relation, direction) for relation in self._offsets for direction in DIRECTIONS]
        self._hits = {key: {name: np.zeros(self._heads, int) for name in _HITS} for key in keys}
        self._counts = {key: Counter() for key in keys}

    def start(self, batch: Batch, views: dict[str, View]) -> None:
        """Find the trials of a batch. Heads are chosen on even sentences, judged on the others."""
        trees, device = [self._trees[n] for n in batch.indices], batch.src.device
        self._numbers = token_numbers([tree.pieces for tree in trees], *self._around).to(device)
        self._batch = {}
        width = max(len(tree.pieces) for tree in trees)
        for key, counts in self._counts.items():
            trials = _trials(trees, *key, self._offsets[key[0]])
            if not trials:
                continue
            targets = torch.zeros(len(trials), width, dtype=torch.bool)
            for row, (_, _, places, _) in zip(targets, trials, strict=True):
                row[list(places)] = True
            rightly = [guess in places for _, _, places, guess in trials]
            half = [batch.indices[sentence] % 2 == 0 for sentence, *_ in trials]
            where = torch.tensor([trial[:2] for trial in trials], device=device).T
            marks = torch.tensor([rightly, half], device=device)[..., None]
            self._batch[key] = (where, targets.to(device), marks)
            counts.update(trials=len(trials), baseline_hits=sum(rightly), half_trials=sum(half))

    def add(self, kind: str, layer: int, weights: Tensor, view: View) -> None:
        words = word_attention(weights, self._numbers, self._numbers)
        places = torch.arange(words.shape[-1], device=words.device)
        pointed_at = pointed(words, places <= self._numbers.amax(1, keepdim=True))  # [b, h, w]
        span = self._grid.span(kind, layer)
        for key, ((sentence, query), targets, (rightly, half)) in self._batch.items():
            place = pointed_at[sentence, :, query]  # [n, h]
            hit = targets.gather(1, place.clamp(min=0)) & (place != NOWHERE)
            counted = (hit, hit & ~rightly, ~hit & rightly, hit & half)
            for name, trials in zip(_HITS, counted, strict=True):
                self._hits[key][name][span] += trials.sum(0).cpu().numpy()

    def rows(self, heads: Sequence[Head], treebank: str) -> list[list]:
        """Return the cells of `SYNTAX_COLUMNS` for every encoder head, relation and direction."""
        rows = []
        for (relation, direction), counts in self._counts.items():
            if not counts["trials"]:
                continue
            row = {"treebank": treebank, "relation": relation, "direction": direction, **counts}
            row |= {"statistic": "accuracy", "offset": self._offsets[relation]}
            for place, head in enumerate(heads[: self._heads]):
                counted = self._hits[relation, direction].items()
                hits = {name: int(values[place]) for name, values in counted}
                row |= head._asdict() | hits | {"value": hits["hits"] / counts["trials"]}
                rows.append([row[name] for name in SYNTAX_COLUMNS])
        return rows


def _trials(
    trees: list[AlignedTree], relation: str, direction: str, offset: int
) -> list[tuple[int, int, set[int], int]]:
    """Return sentence, query, the words that are hits, and the baseline's guess, of each trial."""
    step = offset if direction == "to_dependent" else -offset
    trials = []
    for number, tree in enumerate(trees):
        targets: dict[int, set[int]] = defaultdict(set)
        for arc in tree.arcs:
            if arc.relation == relation:
                ends = (arc.governor, arc.dependent)
                query, target = ends if direction == "to_dependent" else ends[::-1]
                targets[query].add(target)
        trials += [(number, query, hits, query + step) for query, hits in targets.items()]
    return trials


def sentences_of(
    trees: Sequence[AlignedTree], words: Vocabulary, marks: Marked = ((), ())
) -> ParallelText:
    """Return the sentences of a treebank with their marks, and with empty targets."""
    before, after = marks
    sentences = ([*before, *chain.from_iterable(tree.pieces), *after] for tree in trees)
    ids = list(map(words.ids, sentences))
    return ParallelText(ids, [[]] * len(ids))
