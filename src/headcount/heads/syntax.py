"""How often heads point at the word that a word depends on, or that depends on it.

Letters in shapes: b sentences, h heads of a layer, k subword positions, w tokens, n trials.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from headcount.base.addresses import Head, HeadGrid
from headcount.base.head_values import COLUMNS
from headcount.data.trees import AlignedTree
from headcount.heads.head_measures import NOWHERE, pointed
from headcount.heads.word_attention import token_numbers, word_attention

DIRECTIONS = ("to_dependent", "to_governor")
"""From which end of an arc a head looks: from the governor, or from the dependent."""
SYNTAX_COLUMNS = (*COLUMNS, "treebank", "relation", "direction", "offset", "trials", "hits")
SYNTAX_COLUMNS += ("baseline_hits", "head_only", "baseline_only", "half_trials", "half_hits")
_HITS = ("hits", "head_only", "baseline_only", "half_hits")  # what is counted by head


def best_offsets(trees: Iterable[AlignedTree], relations: list[str]) -> dict[str, int]:
    """The most frequent relative position of the dependent, by relation; of equals the nearest.

    Relations without an arc are left out.
    """
    found: dict[str, Counter[int]] = defaultdict(Counter)
    for tree in trees:
        for arc in tree.arcs:
            found[arc.relation][arc.dependent - arc.governor] += 1
    return {
        relation: max(found[relation].items(), key=lambda entry: (entry[1], -abs(entry[0])))[0]
        for relation in relations
        if relation in found
    }


class Syntax:
    """Accuracy of every encoder head for every relation, both ways, over one treebank.

    Source: Voita et al. 2019, section 5.2.1.
    """

    def __init__(self, grid: HeadGrid, offsets: dict[str, int]):
        """`offsets`: of the positional baseline, from `best_offsets`."""
        self._grid, self._offsets = grid, offsets
        keys = [(relation, direction) for relation in offsets for direction in DIRECTIONS]
        heads = sum(grid.counts["enc_self"])
        self._hits = {key: {name: np.zeros(heads, int) for name in _HITS} for key in keys}
        self._counts = {key: Counter() for key in keys}

    def start(self, trees: list[AlignedTree], numbers: list[int], device: torch.device) -> None:
        """Find the trials of a batch; sentence i of the batch is tree i, of that number.

        Sentences of even number make the half on which a head may be chosen, to be judged on the
        others.
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
            where = torch.tensor([each[:2] for each in trials], device=device).T
            marks = torch.tensor([rightly, half], device=device)[..., None]
            self._batch[key] = (where, targets.to(device), marks)
            counts.update(trials=len(trials), baseline_hits=sum(rightly), half_trials=sum(half))

    def add(self, layer: int, weights: Tensor) -> None:
        """Take in one encoder layer's weights [b, h, k, k]; the batch must have been started."""
        where_to = self._pointed(weights)
        span = self._grid.span("enc_self", layer)
        for key, ((sentence, query), targets, (rightly, half)) in self._batch.items():
            place = where_to[sentence, :, query]  # [n, h]
            hit = targets.gather(1, place.clamp(min=0)) & (place != NOWHERE)
            found = (hit, hit & ~rightly, ~hit & rightly, hit & half)
            for name, trials in zip(_HITS, found, strict=True):
                self._hits[key][name][span] += trials.sum(0).cpu().numpy()

    def rows(self, heads: Sequence[Head], treebank: str) -> list[dict]:
        """A row of `SYNTAX_COLUMNS` for each encoder head, relation and direction with a trial.

        `heads`: how they are called, in flat order; value: hits / trials; offset: of the baseline;
        head_only and baseline_only: trials that one of the two alone hits; half: of even sentences.
        """
        rows = []
        for key, counts in self._counts.items():
            relation, direction = key
            said = {"treebank": treebank, "relation": relation, "direction": direction}
            said |= {"statistic": "accuracy", "offset": self._offsets[relation]}
            for place, head in enumerate(heads[: sum(self._grid.counts["enc_self"])]):
                hits = {name: int(found[place]) for name, found in self._hits[key].items()}
                if counts["trials"]:
                    value = {"value": hits["hits"] / counts["trials"]}
                    row = head._asdict() | said | value | counts | hits
                    rows.append({name: row[name] for name in SYNTAX_COLUMNS})
        return rows

    def _pointed(self, weights: Tensor) -> Tensor:
        """Return the token that each token points at, [b, h, w]."""
        numbers = self._numbers
        words = word_attention(weights, numbers, numbers)
        places = torch.arange(words.shape[-1], device=words.device)
        return pointed(words, places <= numbers.amax(1, keepdim=True))


def _trials(
    trees: list[AlignedTree], relation: str, direction: str, offset: int
) -> list[tuple[int, int, set[int], int]]:
    """Sentence, query, the tokens that are hits, and the baseline's guess, of each trial.

    The positional baseline always guesses that the dependent is at the relation's most frequent
    position; its guess may lie outside the sentence.
    """
    step = offset if direction == "to_dependent" else -offset
    found = []
    for number, tree in enumerate(trees):
        targets: dict[int, set[int]] = defaultdict(set)
        for arc in tree.arcs:
            if arc.relation == relation:
                ends = (arc.governor, arc.dependent)
                query, target = ends if direction == "to_dependent" else ends[::-1]
                targets[query].add(target)
        found += [(number, query, hits, query + step) for query, hits in targets.items()]
    return found
