"""Alignment error rates of the cross-attention heads of a model, and of means of heads.

Heads are ranked on every other sentence, and rates are of the other ones. Letters in shapes: b
sentences, h heads of all layers, s systems, q query and k key positions, v and w words.
"""

import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from headcount.base.addresses import Head
from headcount.base.errors import UserError
from headcount.base.files import write_result
from headcount.base.settings.heads import AlignmentSettings
from headcount.data.batches import in_order
from headcount.data.word_links.links import LinkedPair, read_linked
from headcount.heads.alignment import STEPS, WORDS, cross_weights
from headcount.heads.drawn_text import Done
from headcount.heads.head_measures import word_attention
from headcount.heads.linked_text import LinkedText, linked_text
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
LONGEST = 400  # pieces of a sentence; longer ones are left out


@torch.inference_mode()
def count_links(
    model: Transformer, text: LinkedText, mixtures: Tensor, budget: int, done: Done
) -> np.ndarray:
    """Count links of heads, of mixtures of heads [cases, s, h] and of the diagonal, by sentence.

    Returns [cases, systems, sentences, 4]: sure, possible, all, and sure links of the text.
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
    content = _over(weights, text.content(indices).to(device))
    counts = []
    for (step, words), mixture in zip(CASES, mixtures, strict=True):
        numbers = (side.to(device) for side in text.numbers(indices, step))
        by_head = word_attention(weights if words == "all" else content, *numbers)
        by_head = text.whole(by_head, indices)
        shape = by_head.shape[2:]
        mixed = torch.einsum("sh,bhvw->bsvw", mixture, by_head)
        systems = torch.cat([by_head, mixed, text.diagonal(indices, shape).to(device)], 1)
        gold = (part.to(device) for part in text.gold(indices, words, shape))
        counts.append(_judge(systems, width, *gold))
    return torch.stack(counts)


def _over(weights: Tensor, keys: Tensor) -> Tensor:
    """Return weights [b, h, q, k] over some keys [b, k], which sum to 1 for every query."""
    weights = weights * keys[:, None, None, :]
    return weights / weights.sum(-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)


def _judge(weights: Tensor, width: int, part: Tensor, sure: Tensor, possible: Tensor) -> Tensor:
    """Return counts [systems, b, 4] of weights [b, s, v, w]. Keys from `width` are special."""
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
    """Write alignment.csv and alignment.json of models into the folders `outs`."""
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
    """Return rows of alignment.csv without `links`, and the heads that were chosen."""
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
