"""How often heads point at the word that a word depends on, or that depends on it.

Letters in shapes: b sentences, h heads of a layer, k subword positions, w tokens, n trials.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headcount.base.addresses import HeadGrid
from headcount.base.settings.roles import RolesSettings
from headcount.data.trees import AlignedTree, Arc
from headcount.heads.head_measures import NOWHERE, pointed
from headcount.heads.word_attention import token_numbers, word_attention

DIRECTIONS = ("to_dependent", "to_governor")
"""From which end of an arc a head looks: from the governor, or from the dependent."""


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


@dataclass
class _Trials:
    """Trials of one relation and direction in one batch."""

    sentence: list[int]
    query: list[int]
    targets: list[set[int]]
    guess: list[int]  # what the positional baseline points at


class Syntax:
    """Accuracy of every encoder head for every relation, both ways, over one treebank.

    Source: Voita et al. 2019, section 5.2.1.
    """

    def __init__(self, grid: HeadGrid, offsets: dict[str, int], settings: RolesSettings):
        """`offsets`: of the positional baseline, from `best_offsets`."""
        self._grid = grid
        self._settings = settings
        self._offsets = offsets
        keys = [(relation, direction) for relation in offsets for direction in DIRECTIONS]
        heads = len([head for head in grid.heads() if head.kind == "enc_self"])
        names = ("hits", "head_only", "baseline_only", "half_hits")
        self._heads = {key: {name: np.zeros(heads, int) for name in names} for key in keys}
        self._trials = dict.fromkeys(keys, 0)
        self._baseline = dict.fromkeys(keys, 0)
        self._half_trials = dict.fromkeys(keys, 0)

    def start(self, trees: list[AlignedTree], numbers: list[int], device: torch.device) -> None:
        """Find the trials of a batch; sentence i of the batch is tree i, of that number.

        Sentences of even number make the half on which a head may be chosen, to be judged on the
        others.
        """
        eos_is_key = self._settings.eos in ("drop_query", "keep")
        tokens = token_numbers([tree.pieces for tree in trees], eos_is_key)
        self._numbers = tokens.to(device)
        self._batch = {}
        width = max(len(tree.pieces) for tree in trees) + 1  # one more for EOS
        for key in self._trials:
            trials = _trials(trees, *key, self._offsets[key[0]], self._settings)
            if not trials.query:
                continue
            targets = torch.zeros(len(trials.query), width, dtype=torch.bool)
            for row, places in zip(targets, trials.targets, strict=True):
                row[list(places)] = True
            rightly = [g in t for g, t in zip(trials.guess, trials.targets, strict=True)]
            where = torch.tensor([trials.sentence, trials.query], device=device)
            half = [numbers[sentence] % 2 == 0 for sentence in trials.sentence]
            marks = torch.tensor([rightly, half], device=device)[..., None]
            self._batch[key] = (where, targets.to(device), marks)
            self._half_trials[key] += sum(half)
            self._trials[key] += len(rightly)
            self._baseline[key] += sum(rightly)

    def add(self, layer: int, weights: Tensor) -> None:
        """Take in one encoder layer's weights [b, h, k, k]; the batch must have been started."""
        where_to = self._pointed(weights)
        span = self._grid.span("enc_self", layer)
        for key, ((sentence, query), targets, (rightly, half)) in self._batch.items():
            place = where_to[sentence, :, query]  # [n, h]
            hit = targets.gather(1, place.clamp(min=0)) & (place != NOWHERE)
            found = self._heads[key]
            counted = {"hits": hit, "half_hits": hit & half}
            counted |= {"head_only": hit & ~rightly, "baseline_only": ~hit & rightly}
            for name, trials in counted.items():
                found[name][span] += trials.sum(0).cpu().numpy()

    def rows(self, treebank: str) -> list[dict]:
        """A row for each encoder head, relation and direction that has a trial.

        Keys: kind, layer, head, statistic (accuracy), value (hits / trials), treebank, relation,
        direction, offset (of the baseline), trials, hits, baseline_hits, head_only, baseline_only
        (trials that one of the two alone hits), half_trials, half_hits (of the even sentences).
        """
        heads = [head for head in self._grid.heads() if head.kind == "enc_self"]
        return [
            head._asdict()
            | {"statistic": "accuracy", "value": int(found["hits"][place]) / self._trials[key]}
            | {"treebank": treebank, "relation": key[0], "direction": key[1]}
            | {"offset": self._offsets[key[0]], "trials": self._trials[key]}
            | {"hits": int(found["hits"][place]), "baseline_hits": self._baseline[key]}
            | {name: int(found[name][place]) for name in ("head_only", "baseline_only")}
            | {"half_trials": self._half_trials[key], "half_hits": int(found["half_hits"][place])}
            for key, found in self._heads.items()
            if self._trials[key]
            for place, head in enumerate(heads)
        ]

    def _pointed(self, weights: Tensor) -> Tensor:
        """The token that each token points at, [b, h, w]; EOS may be one after the last."""
        numbers, settings = self._numbers, self._settings
        words = word_attention(weights, numbers, numbers, settings.words_to, settings.words_from)
        places = torch.arange(words.shape[-1], device=words.device)
        return pointed(words, places <= numbers.amax(1, keepdim=True))


def _trials(
    trees: list[AlignedTree], relation: str, direction: str, offset: int, settings: RolesSettings
) -> _Trials:
    """The trials of one relation and direction: a query, the tokens that are hits, a guess.

    The positional baseline always guesses that the dependent is at the relation's most frequent
    position; its guess may lie outside the sentence.
    """
    found = _Trials([], [], [], [])
    for number, tree in enumerate(trees):
        targets: dict[tuple[int, int], set[int]] = defaultdict(set)
        for place, arc in enumerate(tree.arcs):
            if arc.relation != relation or not _counts(tree, arc, settings):
                continue
            ends = (arc.governor, arc.dependent)
            query, target = ends if direction == "to_dependent" else ends[::-1]
            trial = place if settings.multi == "per_arc" else 0
            targets[query, trial].add(target)
        step = offset if direction == "to_dependent" else -offset
        for (query, _), places in targets.items():
            found.sentence.append(number)
            found.query.append(query)
            found.targets.append(places)
            found.guess.append(query + step)
    return found


def _counts(tree: AlignedTree, arc: Arc, settings: RolesSettings) -> bool:
    """Whether both ends of an arc are words that count."""
    if settings.words_filter == "all":
        return True
    return len(tree.pieces[arc.governor]) == len(tree.pieces[arc.dependent]) == 1
