"""Confidence, relative positions, attention to rare words and between words, by batches.

Letters in shapes: b sentences, h heads of one layer, q query positions, k key positions, v and w
words of both. A head points at the key of its largest weight, or at none if several keys share it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from headcount.base.addresses import KINDS, Head, HeadGrid
from headcount.base.head_values import COLUMNS
from headcount.base.settings.heads import RolesSettings
from headcount.data.batches import Batch, ParallelText, in_order
from headcount.data.vocabulary import BOS, EOS, PAD
from headcount.heads.drawn_text import Done
from headcount.model.transformer import Transformer, first_device, watch_attention

NOWHERE = OUTSIDE = -1
LARGEST_PART = 0.25  # of all subwords of the text that count as frequent
POSITION_COLUMNS = (*COLUMNS, "offset", "hits", "trials", "counted")


@dataclass
class View:
    """Positions of a batch that count for one attention type, boolean."""

    queries: Tensor  # [b, q]
    keys: Tensor  # [b, k]
    _last: tuple[Tensor | None, Any] = (None, None)

    def largest(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Return `largest` of these keys. Several measures ask for the same weights in turn."""
        if self._last[0] is not weights:
            self._last = weights, largest(weights, self.keys)
        return self._last[1]


def views(batch: Batch) -> dict[str, View]:
    """Return the view of every attention type: words as queries and as keys."""
    source, target = (
        (tokens != PAD) & (tokens != BOS) & (tokens != EOS) for tokens in (batch.src, batch.tgt_in)
    )
    return {
        "enc_self": View(source, source),
        "dec_self": View(target, target),
        "dec_enc": View(target, source),
    }


def largest(weights: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """Return the largest weight of keys that count, and its key or `NOWHERE`, both [b, h, q].

    `weights` is [b, h, q, k], `keys` [b, k]. A key of weight 0 is never pointed at.
    """
    weights = weights * keys[:, None, None, :]
    most, where = weights.max(-1)
    shared = (weights - most[..., None]).sign().sum(-1) > 1 - weights.shape[-1]  # fast, exact
    return most, where.masked_fill(shared | (most == 0), NOWHERE)


def pointed(weights: Tensor, keys: Tensor) -> Tensor:
    """Return the key [b, h, q] that a query points at among those that count, or `NOWHERE`."""
    return largest(weights, keys)[1]


def entropies(weights: Tensor) -> Tensor:
    """Return the entropy of weights [..., k] in nats. `torch.special.entr` takes three times."""
    logarithms = weights.clamp(min=torch.finfo(weights.dtype).tiny).log_()
    return -logarithms.mul_(weights).sum(-1)


def token_numbers(pieces: list[list[list[str]]], before: int = 0, after: int = 0) -> Tensor:
    """Return the word that each subword belongs to, [b, k], `OUTSIDE` for EOS and padding.

    `before`, `after`: numbers of marks around every sentence, which are `OUTSIDE` as well.
    """
    rows = [word_numbers(map(len, words), before, after + 1) for words in pieces]
    width = max(map(len, rows))
    return torch.tensor([row + [OUTSIDE] * (width - len(row)) for row in rows])


def word_numbers(lengths: Iterable[int], before: int, after: int) -> list[int]:
    """Return the word of every piece, of words with these lengths, `OUTSIDE` around them."""
    words = [word for word, length in enumerate(lengths) for _ in range(length)]
    return [OUTSIDE] * before + words + [OUTSIDE] * after


def word_attention(weights: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """Return attention between words, [b, h, v, w], of weights [b, h, q, k] between subwords.

    `queries` [b, q] and `keys` [b, k] number the words, as `token_numbers` does. Attention to a
    word is the sum over its subwords, attention from a word the mean. Other entries are 0.
    """
    rows, columns = (  # 1 where a subword belongs to a word, [b, k, w]
        functional.one_hot(numbers + 1, int(numbers.max()) + 2)[..., 1:].float()
        for numbers in (queries, keys)
    )
    rows = rows / rows.sum(1, keepdim=True).clamp(min=1)
    toward = weights @ columns[:, None].to(weights.dtype)
    return rows.transpose(1, 2)[:, None].to(weights.dtype) @ toward


class AttentionMeasure:
    """Base class of measures that add up the attention weights of a model, batch by batch."""

    kinds: tuple[str, ...] = KINDS  # attention types that are measured

    def __init__(self, grid: HeadGrid):
        self._grid = grid

    def start(self, batch: Batch, views: dict[str, View]) -> None:
        """Prepare for the weights of a batch."""

    def add(self, kind: str, layer: int, weights: Tensor, view: View) -> None:
        """Add the weights [b, h, q, k] of one layer after `start`."""


@torch.inference_mode()
def add_up(
    measures: Sequence[AttentionMeasure],
    model: Transformer,
    text: ParallelText,
    budget: int,
    done: Done = lambda sentences: None,
) -> None:
    """Give every measure the attention weights of all batches of a text."""
    batch_views: dict[str, View] = {}

    def add(kind: str, layer: int, weights: Tensor) -> None:
        for measure in measures:
            if kind in measure.kinds:
                measure.add(kind, layer, weights, batch_views[kind])

    with watch_attention(model.eval(), add):
        for batch in in_order(text, budget, first_device(model)):
            batch_views.update(views(batch))
            for measure in measures:
                measure.start(batch, batch_views)
            model.decode(batch.tgt_in, model.encode(batch.src))
            done(len(batch.indices))


class Confidence(AttentionMeasure):
    """Mean largest weight, and mean entropy, of every head: Voita et al. 2019, section 4."""

    def __init__(self, grid: HeadGrid):
        super().__init__(grid)
        self._sums = np.zeros((3, grid.size))  # largest weights, entropies, queries

    def add(self, kind: str, layer: int, weights: Tensor, view: View) -> None:
        queries = view.queries[:, None, :]
        most, _ = view.largest(weights)
        counted = [_total(values * queries) for values in (most, entropies(weights), most >= 0)]
        self._sums[:, self._grid.span(kind, layer)] += counted

    def means(self) -> dict[str, np.ndarray]:
        """Return confidence (0 to 1) and entropy (nats), [heads], NaN without queries."""
        with np.errstate(invalid="ignore"):
            confidence, entropy = self._sums[:2] / self._sums[2]
        return {"confidence": confidence, "entropy": entropy}


class Positions(AttentionMeasure):
    """Relative positions at which self-attention heads point: Voita et al. 2019, section 5.1."""

    kinds = ("enc_self", "dec_self")  # in the others, positions of two languages would be compared

    def __init__(self, grid: HeadGrid, longest: int):
        """`longest`: length of the longest sentence on either side, in subwords with EOS."""
        super().__init__(grid)
        self._reach = longest
        self._hits = np.zeros((grid.size, 2 * longest + 1), dtype=np.int64)
        self._trials = {kind: np.zeros(2 * longest + 1, dtype=np.int64) for kind in self.kinds}

    def start(self, batch: Batch, views: dict[str, View]) -> None:
        """Count the queries of a batch for which a relative position could be pointed at."""
        for kind in self.kinds:
            view = views[kind]
            length = view.queries.shape[1]
            for offset in range(1 - length, length):
                first, last = max(0, -offset), length - max(0, offset)
                pairs = view.queries[:, first:last] & view.keys[:, first + offset : last + offset]
                self._trials[kind][offset + self._reach] += pairs.sum().item()

    def add(self, kind: str, layer: int, weights: Tensor, view: View) -> None:
        _, where = view.largest(weights)
        valid = (where != NOWHERE) & view.queries[:, None, :]
        hits = self._hits[self._grid.span(kind, layer)]  # a view
        heads, queries = (torch.arange(size, device=where.device) for size in where.shape[1:])
        cells = where - queries + self._reach + hits.shape[1] * heads[:, None]
        counts = np.bincount(cells[valid].cpu().numpy(), minlength=hits.size)
        hits += counts.reshape(hits.shape)

    def rows(self, heads: Sequence[Head], statistic: str, counted: np.ndarray) -> list[list]:
        """Return the cells of `POSITION_COLUMNS` for every head and position that it points at.

        `counted`: True for heads of which tables use these rows, [heads].
        """
        rows = []
        for head, hits, used in zip(heads, self._hits, counted.astype(int).tolist(), strict=True):
            for place in hits.nonzero()[0].tolist():
                hit, trials = int(hits[place]), int(self._trials[head.kind][place])
                share = hit / trials
                rows.append([*head, statistic, share, place - self._reach, hit, trials, used])
        return rows


class RareWords(AttentionMeasure):
    """Shares of queries that point at rarest subwords: Voita et al. 2019, section 5.3."""

    kinds = ("enc_self",)

    def __init__(self, grid: HeadGrid, counts: Tensor, settings: RolesSettings):
        """`counts`: occurrences of each source id in the training text, [vocabulary]."""
        super().__init__(grid)
        self._counts, self._limit = counts, frequent_limit(counts, settings)
        self._hits = {name: np.zeros(grid.size) for name in ("rarest", "two_rarest")}
        self._chance = dict.fromkeys(self._hits, 0.0)
        self._trials = self.sentences = 0

    def start(self, batch: Batch, views: dict[str, View]) -> None:
        """Find the rarest subwords of a batch and the queries that are trials."""
        words = views["enc_self"].keys
        counts = self._counts[batch.src].masked_fill(~words, torch.iinfo(torch.int64).max)
        ordered = counts.sort(-1).values
        # Two positions at least: a sentence of one word has nothing to choose from.
        tested = (words.sum(-1) > 1) & (ordered[:, 0] < self._limit)
        second = ordered[:, min(1, ordered.shape[1] - 1)]
        self._rare = {
            "rarest": (counts == ordered[:, :1]) & words,
            "two_rarest": (counts <= second[:, None]) & words,
        }
        self._queries = words & tested[:, None]
        self._trials += self._queries.sum().item()
        self.sentences += int(tested.sum())
        for name, rare in self._rare.items():
            share = rare.sum(-1) / words.sum(-1).clamp(min=1)
            self._chance[name] += (self._queries.double() * share[:, None]).sum().item()

    def add(self, kind: str, layer: int, weights: Tensor, view: View) -> None:
        _, where = view.largest(weights)
        for name, rare in self._rare.items():
            at = rare[:, None, :].expand(-1, where.shape[1], -1).gather(2, where.clamp(min=0))
            hits = at & (where != NOWHERE) & self._queries[:, None, :]
            self._hits[name][self._grid.span(kind, layer)] += _total(hits)

    def shares(self) -> dict[str, np.ndarray]:
        """Return shares (0 to 1), [heads], and the shares that random keys would give.

        Ties count. NaN for heads outside the encoder, and for all heads without a trial.
        """
        encoder = np.array([head.kind == "enc_self" for head in self._grid.heads()], dtype=bool)
        shares = {}
        for name in self._hits:
            for end, count in (("", self._hits[name]), ("_chance", self._chance[name])):
                share = count / (self._trials or np.nan)
                shares[f"rare_{name}{end}"] = np.where(encoder, share, np.nan)
        return shares


class Copies(AttentionMeasure):
    """Cross-attention from target subwords that repeat a rare source subword to that subword."""

    kinds = ("dec_enc",)

    def __init__(self, grid: HeadGrid, counts: Tensor, limit: int, same: Tensor):
        """`counts` as in `RareWords`, rare below `limit`; `same`: target id of each source id."""
        super().__init__(grid)
        self._same = same.masked_fill(counts >= limit, NOWHERE)
        self._trials, self._hits = np.zeros(2, int), np.zeros((2, grid.size), int)

    def start(self, batch: Batch, views: dict[str, View]) -> None:
        """Find the trials of a batch: target subwords with one such source subword."""
        at = self._same[batch.src][:, None, :] == batch.tgt_out[:, :, None]  # [b, q, k]
        self._places = at.long().argmax(-1)[:, None, :]
        odd = torch.tensor(batch.indices, device=at.device)[:, None] % 2
        self._queries = [(at.sum(-1) == 1) & (odd == half) for half in (0, 1)]
        self._trials += [int(queries.sum()) for queries in self._queries]

    def add(self, kind: str, layer: int, weights: Tensor, view: View) -> None:
        right = view.largest(weights)[1] == self._places
        for hits, queries in zip(self._hits, self._queries, strict=True):
            hits[self._grid.span(kind, layer)] += _total(right & queries[:, None]).astype(int)

    def best(self) -> dict[str, int]:
        """Return hits and trials on every second sentence of the head that leads on the others."""
        hits = int(self._hits[1, self._hits[0].argmax()]) if self._grid.size else 0
        return {"copy_hits": hits, "copy_trials": int(self._trials[1])}


def frequent_limit(counts: Tensor, settings: RolesSettings) -> int:
    """Return the count below which a subword is rare: the count of the last frequent subword."""
    ordered = counts[counts > 0].sort(descending=True).values
    frequent = min(settings.rare_frequent, int(LARGEST_PART * len(ordered)))
    return int(ordered[frequent - 1]) if frequent else torch.iinfo(torch.int64).max


def _total(values: Tensor) -> np.ndarray:
    """Return the sum over sentences and queries of [b, h, q]: [h]."""
    return values.double().sum((0, 2)).cpu().numpy()
