"""Accuracy of heads for syntactic relations: they point at a word's governor or dependent.

Letters in shapes: b sentences, h heads of a layer, k subword positions, w words, n trials.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from headcount.base.addresses import Head, HeadGrid
from headcount.base.head_values import COLUMNS
from headcount.data.trees import AlignedTree
from headcount.heads.head_measures import NOWHERE, pointed, token_numbers, word_attention

DIRECTIONS = ("to_dependent", "to_governor")
"""The end of an arc at which a head is expected to point. The query is the other end."""
SYNTAX_COLUMNS = (*COLUMNS, "treebank", "relation", "direction", "offset", "trials", "hits")
SYNTAX_COLUMNS += ("baseline_hits", "head_only", "baseline_only", "half_trials", "half_hits")
_HITS = ("hits", "head_only", "baseline_only", "half_hits")  # what is counted by head


def best_offsets(trees: Iterable[AlignedTree], relations: list[str]) -> dict[str, int]:
    """Return the most frequent relative position of the dependent, by relation that has an arc.

    Of equally frequent positions it is the nearest.
    """
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    for tree in trees:
        for arc in tree.arcs:
            counts[arc.relation][arc.dependent - arc.governor] += 1
    return {
        relation: max(counts[relation].items(), key=lambda entry: (entry[1], -abs(entry[0])))[0]
        for relation in relations
        if relation in counts
    }


class Syntax:
    """Accuracy of every encoder head for every relation, both ways, over one treebank.

    Source: Voita et al. 2019, section 5.2.1.
    """

    def __init__(self, grid: HeadGrid, offsets: dict[str, int]):
        """`offsets`: of the positional baseline, from `best_offsets`."""
        self._grid, self._offsets = grid, offsets
        self._heads = sum(grid.counts["enc_self"])  # they stand first in flat order
        keys = [(relation, direction) for relation in offsets for direction in DIRECTIONS]
        self._hits = {key: {name: np.zeros(self._heads, int) for name in _HITS} for key in keys}
        self._counts = {key: Counter() for key in keys}

    def start(self, trees: list[AlignedTree], numbers: list[int], device: torch.device) -> None:
        """Find the trials of a batch, whose sentences are these trees of these numbers.

        Sentences of even number are the half on which a head may be chosen, to be judged on the
        other half.
        """
        self._numbers = token_numbers([tree.pieces for tree in trees]).to(device)
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
            half = [numbers[sentence] % 2 == 0 for sentence, *_ in trials]
            where = torch.tensor([trial[:2] for trial in trials], device=device).T
            marks = torch.tensor([rightly, half], device=device)[..., None]
            self._batch[key] = (where, targets.to(device), marks)
            counts.update(trials=len(trials), baseline_hits=sum(rightly), half_trials=sum(half))

    def add(self, layer: int, weights: Tensor) -> None:
        """Add the weights [b, h, k, k] of one encoder layer after `start`."""
        words = word_attention(weights, self._numbers, self._numbers)
        places = torch.arange(words.shape[-1], device=words.device)
        pointed_at = pointed(words, places <= self._numbers.amax(1, keepdim=True))  # [b, h, w]
        span = self._grid.span("enc_self", layer)
        for key, ((sentence, query), targets, (rightly, half)) in self._batch.items():
            place = pointed_at[sentence, :, query]  # [n, h]
            hit = targets.gather(1, place.clamp(min=0)) & (place != NOWHERE)
            counted = (hit, hit & ~rightly, ~hit & rightly, hit & half)
            for name, trials in zip(_HITS, counted, strict=True):
                self._hits[key][name][span] += trials.sum(0).cpu().numpy()

    def rows(self, heads: Sequence[Head], treebank: str) -> list[list]:
        """Return the cells of `SYNTAX_COLUMNS` for every encoder head, relation and direction.

        `heads` are addresses in flat order. Value: hits / trials. Offset: of the baseline.
        head_only and baseline_only: trials that one of the two alone hits. Half: of even sentences.
        """
        rows = []
        for (relation, direction), counts in self._counts.items():
            if not counts["trials"]:
                continue
            row = {"treebank": treebank, "relation": relation, "direction": direction, **counts}
            row |= {"statistic": "accuracy", "offset": self._offsets[relation]}
            for place, head in enumerate(heads[: self._heads]):
                hits = {
                    n: int(values[place]) for n, values in self._hits[relation, direction].items()
                }
                row |= head._asdict() | hits | {"value": hits["hits"] / counts["trials"]}
                rows.append([row[name] for name in SYNTAX_COLUMNS])
        return rows


def _trials(
    trees: list[AlignedTree], relation: str, direction: str, offset: int
) -> list[tuple[int, int, set[int], int]]:
    """Return sentence, query, the words that are hits, and the baseline's guess, of each trial.

    The positional baseline always guesses that the dependent is at the relation's most frequent
    position. Its guess may lie outside the sentence.
    """
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
