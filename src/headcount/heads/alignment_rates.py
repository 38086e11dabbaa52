"""Alignment error rates of the cross-attention heads of a model, and of means of heads.

Heads are ranked on every other sentence, and rates are of the other ones. Letters in shapes: b
sentences, h heads of all layers, s systems, q query and k key positions, v and w words.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from tqdm import tqdm

from headcount.base.addresses import Head
from headcount.base.errors import UserError
from headcount.base.files import write_result
from headcount.base.settings.heads import AlignmentSettings
from headcount.data.batches import ParallelText, in_order
from headcount.data.word_links.links import LinkedPair, read_linked
from headcount.data.words import AnySegmenter, is_punctuation, restore
from headcount.heads.alignment import STEPS, WORDS, cross_weights, word_numbers
from headcount.heads.drawn_text import Done
from headcount.heads.head_measures import OUTSIDE, word_attention
from headcount.model.machine import batches_of
from headcount.model.transformer import Transformer, first_device
from headcount.scoring.bootstrap import interval, resamples
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

COLUMNS = ("links", "step", "words", "system", "kind", "layer", "head", "k", "sentences", "aer")
COLUMNS += ("low", "high", "precision", "recall", "rank", "chosen")
BEST = (1, 2, 4)
"""Numbers of best heads whose mean is taken."""
CASES = tuple(product(STEPS, WORDS))
SAMPLES = 1000  # resamples of the sentences
Words = list[list[int]]  # the word of every id of sentences
LONGEST = 400  # pieces of a sentence; longer ones are left out


class LinkedText:
    """Sentence pairs with links, as ids for a model and as numbers of words for its weights."""

    def __init__(self, pairs: list[LinkedPair], ids: ParallelText, words: Sequence[Words]):
        """`words`: of sources and of targets, the word of every id, `OUTSIDE` for special ids."""
        self.pairs, self.ids, self._words = pairs, ids, words
        self._content = [
            [torch.tensor([_is_text(word) for word in words]) for words in (p.source, p.target)]
            for p in pairs
        ]

    def halves(self) -> "list[LinkedText]":
        """Return the pairs that rank heads, the first and every other one, and those for rates."""
        ids = [self.ids.part(range(first, len(self.pairs), 2)) for first in (0, 1)]
        words = [[side[first::2] for side in self._words] for first in (0, 1)]
        return [LinkedText(self.pairs[n::2], ids[n], words[n]) for n in (0, 1)]

    def numbers(self, indices: list[int], step: str) -> tuple[Tensor, Tensor]:
        """Return the words of queries [b, q] and keys [b, k]. Special keys follow all words."""
        keys, queries = (_padded([side[i] for i in indices]) for side in self._words)
        special = keys == OUTSIDE
        keys[special] = (special.cumsum(1) + self.longest(indices)[1] - 1)[special]
        if step == "input":
            queries = functional.pad(queries[:, :-1], (1, 0), value=OUTSIDE)
        return queries, keys

    def gold(self, indices: list[int], words: str, shape: tuple[int, int]) -> list[Tensor]:
        """Return what takes part, and sure and possible links among it: [b, v, w], boolean."""
        gold = torch.zeros(3, len(indices), *shape, dtype=torch.bool)
        for row, index in enumerate(indices):
            pair, (source, target) = self.pairs[index], self._content[index]
            if words == "all":  # special keys, too, except for those of padding
                gold[0, row, : len(target)] = True
            else:
                gold[0, row, : len(target), : len(source)] = target[:, None] & source
            for place, links in ((1, pair.sure), (2, pair.possible)):
                at = torch.tensor(links, dtype=torch.long).reshape(-1, 2).T
                gold[place, row, at[1], at[0]] = True
        return [gold[0], gold[1] & gold[0], gold[2] & gold[0]]

    def whole(self, weights: Tensor, indices: list[int]) -> Tensor:
        """Return weights [b, h, v, w] with rows for all target words, also those without pieces."""
        return functional.pad(weights, (0, 0, 0, self.longest(indices)[0] - weights.shape[2]))

    def longest(self, indices: list[int]) -> tuple[int, int]:
        """Return the most words of a target, and of a source, in a batch."""
        pairs = [self.pairs[index] for index in indices]
        return max(len(pair.target) for pair in pairs), max(len(pair.source) for pair in pairs)

    def diagonal(self, indices: list[int], shape: tuple[int, int]) -> Tensor:
        """Return weights [b, 1, v, w] that are largest at the word in the same place."""
        weights = torch.zeros(len(indices), 1, *shape)
        for row, pair in enumerate(self.pairs[index] for index in indices):
            places = [(torch.arange(n) + 0.5) / n for n in map(len, (pair.target, pair.source))]
            apart = (places[0][:, None] - places[1]).abs()
            weights[row, 0, : len(apart), : apart.shape[1]] = 1 - apart
        return weights


def linked_text(pairs: list[LinkedPair], sides: tuple[AnySegmenter, AnySegmenter]) -> LinkedText:
    """Return pairs as our models read them, with marks around them and an end."""
    both = ([p.source for p in pairs], [p.target for p in pairs])
    ids, words = zip(*map(_read, sides, both), strict=True)
    return LinkedText(pairs, ParallelText(*ids), words)


def _read(side: AnySegmenter, texts: list[list[list[str]]]) -> tuple[list[list[int]], Words]:
    """Return the ids of texts, and the word of every id and of the end."""
    before, after = side.marks
    pieces = ([*before, *chain.from_iterable(words), *after] for words in texts)
    around = len(before), len(after) + 1
    words = [word_numbers(map(len, words), *around) for words in texts]
    return [side.vocabulary.ids(sentence) for sentence in pieces], words


def _is_text(word: list[str]) -> bool:
    """Return True unless the pieces of a word are only punctuation. A word may have no piece."""
    text = "".join(restore(piece).lstrip("▁Ġ") for piece in word)
    return not text or not is_punctuation(text)


def _padded(rows: Words) -> Tensor:
    return pad_sequence(list(map(torch.tensor, rows)), True, OUTSIDE)


@torch.inference_mode()
def count_links(
    model: Transformer, text: LinkedText, mixtures: Tensor, budget: int, done: Done
) -> np.ndarray:
    """Count links of heads, of mixtures of heads [cases, s, h] and of the diagonal, by sentence.

    Cases are `STEPS` × `WORDS`. Returns [cases, systems, sentences, 4]: links that are sure, links
    that are possible, all links, and sure links of the text.
    """
    systems = mixtures.shape[1] + mixtures.shape[2] + 1
    counts = np.zeros((len(CASES), systems, len(text.pairs), 4), dtype=np.int64)
    device = first_device(model)
    mixtures = mixtures.to(device)
    for batch in in_order(text.ids, budget, device):
        of_batch = _count(cross_weights(model, batch), text, batch.indices, mixtures)
        counts[:, :, batch.indices] = of_batch.cpu().numpy()
        done(len(batch.indices))
    return counts


def _count(weights: Tensor, text: LinkedText, indices: list[int], mixtures: Tensor) -> Tensor:
    """Return the counts of `count_links` for a batch, from weights [b, h, q, k]."""
    device, width = weights.device, text.longest(indices)[1]
    by_step = [
        text.whole(word_attention(weights, *(n.to(device) for n in numbers)), indices)
        for numbers in (text.numbers(indices, step) for step in STEPS)
    ]
    shape = by_step[0].shape[2:]
    diagonal = text.diagonal(indices, shape).to(device)
    gold = [[part.to(device) for part in text.gold(indices, words, shape)] for words in WORDS]
    counts = []
    for (of_step, of_words), mixture in zip(product(by_step, gold), mixtures, strict=True):
        mixed = torch.einsum("sh,bhvw->bsvw", mixture, of_step)
        counts.append(_judge(torch.cat([of_step, mixed, diagonal], 1), width, *of_words))
    return torch.stack(counts)


def _judge(weights: Tensor, width: int, part: Tensor, sure: Tensor, possible: Tensor) -> Tensor:
    """Return the counts of `count_links`, [systems, b, 4], of weights [b, s, v, w].

    Keys from `width` are special.
    """
    largest, where = weights.masked_fill(~part[:, None], 0).max(-1)
    at = where[..., None]
    hits = [
        side[:, None].expand(*weights.shape[:2], -1, -1).gather(-1, at)[..., 0] & (largest > 0)
        for side in (sure, possible)
    ]
    linked = (largest > 0) & (where < width)
    wanted = sure.sum((1, 2))[:, None].expand(weights.shape[:2])
    return torch.stack([*(side.sum(-1) for side in (*hits, linked)), wanted], -1).transpose(0, 1)


def error_rates(counts: np.ndarray) -> np.ndarray:
    """Return AER, precision and recall, [..., 3], of counts [..., 4], missing where nothing counts.

    AER is 1 − (links that are sure + links that are possible) / (links + sure links of the text)
    (Och and Ney 2003).
    """
    sure, possible, links, wanted = np.moveaxis(counts.astype(float), -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = [1 - (sure + possible) / (links + wanted), possible / links, sure / wanted]
    return np.stack(rates, -1)


def write_alignment(
    folders: list[ModelFolder],
    outs: list[Path],
    pair: PairFolder,
    links: Path,
    settings: AlignmentSettings,
    origins: list[dict[str, Any]],
) -> None:
    """Write alignment.csv and alignment.json of models into the folders `outs`.

    `links`: a file of scripts/links.py. Heads of a pruned model have their addresses in the
    original. Raises UserError without two sentences with words, and without any link.
    """
    pairs = list(filter(_fits, read_linked(links, settings.sentences)))
    if len(pairs) < 2 or not any(one.possible for one in pairs):
        raise UserError(f"{links}: expected two sentences or more with links; check the links file")
    halves = linked_text(pairs, pair.segmenters()).halves()
    for folder, out, origin in zip(folders, outs, origins, strict=True):
        folder.check(pair)
        begun, model = time.perf_counter(), folder.load(settings.device)
        names = [head for head in folder.original_heads(model.grid) if head.kind == "dec_enc"]
        with (
            batches_of("resources", settings.batch_tokens),
            tqdm(total=len(pairs), unit="sentence", disable=None) as bar,
        ):
            rows, best = measure(model, names, halves, settings.batch_tokens, bar.update)
        facts = {"links": settings.links, "sentences": len(pairs), "best": best}
        facts |= {"seconds": round(time.perf_counter() - begun, 2), "provenance": origin}
        kind = [settings.links]
        write_result(out / "alignment.csv", COLUMNS, [kind + row for row in rows], facts)


def _fits(pair: LinkedPair) -> bool:
    """Return whether both sides have words, and no more pieces than models have positions for."""
    return all(0 < sum(map(len, words)) <= LONGEST for words in (pair.source, pair.target))


def measure(
    model: Transformer, names: list[Head], halves: list[LinkedText], budget: int, done: Done
) -> tuple[list[list[Any]], dict[str, Any]]:
    """Return rows of alignment.csv without `links`, and the heads that were chosen.

    `names`: the addresses of the cross-attention heads. The first half of the text ranks heads.
    """
    none = torch.zeros(len(CASES), 0, len(names))
    ranked = error_rates(count_links(model, halves[0], none, budget, done).sum(2))[..., 0]
    orders = np.argsort(ranked[:, : len(names)], axis=1, kind="stable")
    mixtures = torch.from_numpy(np.stack([_mixtures(names, order) for order in orders]))
    counts = count_links(model, halves[1], mixtures.float(), budget, done)
    systems = [("head", *name, None) for name in names]
    systems += [("layer", "dec_enc", layer, None, None) for layer in _layers(names)]
    systems += [("mean", "dec_enc", None, None, k) for k in BEST if k <= len(names)]
    systems.append(("diagonal", None, None, None, None))
    rows = []
    for case, of_case, order in zip(CASES, counts, orders, strict=True):
        ranks = {int(head): rank for rank, head in enumerate(order, start=1)}
        for number, (system, rates) in enumerate(zip(systems, _with_bounds(of_case), strict=True)):
            rank = ranks.get(number)
            chosen = None if rank is None else int(rank <= BEST[-1])
            rows.append([*case, *system, len(halves[1].pairs), *rates, rank, chosen])
    return rows, _best([names[head] for head in orders[CASES.index(("output", "content"))]])


def _layers(names: list[Head]) -> list[int]:
    return sorted({name.layer for name in names})


def _mixtures(names: list[Head], order: np.ndarray) -> np.ndarray:
    """Return weights [s, h] of the heads in the mean of every layer and of the best heads."""
    layers = [[name.layer == layer for name in names] for layer in _layers(names)]
    best = [np.isin(np.arange(len(names)), order[:k]) for k in BEST if k <= len(names)]
    chosen = np.array([*layers, *best], dtype=float).reshape(len(layers + best), len(names))
    return chosen / chosen.sum(1, keepdims=True)


def _with_bounds(counts: np.ndarray) -> Iterator[list[float]]:
    """Yield AER with its 95 % interval over sentences, precision and recall of every system."""
    flat = counts.transpose(1, 0, 2).reshape(counts.shape[1], -1).astype(float)
    drawn = [(times @ flat).reshape(len(times), -1, 4) for times in resamples(len(flat), SAMPLES)]
    samples = error_rates(np.concatenate(drawn))[..., 0].T
    for (aer, precision, recall), row in zip(error_rates(counts.sum(1)), samples, strict=True):
        known = row[~np.isnan(row)]
        bounds = interval(known) if len(known) else (None, None)
        yield [_known(aer), *bounds, _known(precision), _known(recall)]


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _best(order: list[Head]) -> dict[str, Any]:
    """Return the names of the best heads by their number, and of the two best in one layer."""
    best = {str(k): [head.name() for head in order[:k]] for k in BEST if k <= len(order)}
    layers = [[head for head in order if head.layer == layer][:2] for layer in _layers(order)]
    places = [sum(map(order.index, two)) if len(two) > 1 else len(order) for two in layers]
    chosen = layers[int(np.argmin(places))] if layers else []
    return best | {"layer": [head.name() for head in chosen]}
