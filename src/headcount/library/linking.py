"""Links between words, and rates of heads that find them, with lists in place of files."""

from collections.abc import Sequence

import pandas as pd
import torch
from torch import Tensor

from headcount.base.addresses import Head, HeadGrid
from headcount.base.errors import UserError
from headcount.base.head_values import read_address
from headcount.data.batches import in_order
from headcount.data.trees import cut_tokens
from headcount.data.word_links.links import LinkedPair, Pairs, linked_pair
from headcount.data.words import AnySegmenter
from headcount.heads.alignment import cross_weights
from headcount.heads.alignment_rates import COLUMNS, measure
from headcount.heads.head_measures import word_attention
from headcount.heads.linked_text import LinkedText, linked_text
from headcount.model.transformer import Transformer, first_device

Sides = tuple[AnySegmenter, AnySegmenter]
Named = Sequence[str | Head]
Cut = Sequence[list[list[str]]]  # sentences, as pieces of every word


def read_links(
    sources: Sequence[str], targets: Sequence[str], links: Sequence[str] | None, sides: Sides
) -> LinkedText:
    """Return cleaned lines as pairs with links. Raises UserError for wrong counts and links."""
    both = zip((sources, targets), sides, strict=True)
    cut = ([cut_tokens(line.split(), side) for line in lines] for lines, side in both)
    return linked_text(join_links(*cut, links), sides)


def join_links(sources: Cut, targets: Cut, links: Sequence[str] | None) -> list[LinkedPair]:
    """Return sentences as pairs with links. Raises UserError for wrong counts and links."""
    if links is None:
        raise UserError(
            "alignment: expected links, a string such as '0-0 1-2' for every pair; where people "
            "have made none, give links of an aligner such as eflomal"
        )
    if not 0 < len(sources) == len(targets) == len(links):
        counts = f"{len(sources)}, {len(targets)} and {len(links)}"
        raise UserError(f"expected as many sources, targets and lines of links, found {counts}")
    given = zip(sources, targets, links, strict=True)
    return [
        linked_pair(line, words, f"links[{number}]") for number, (*words, line) in enumerate(given)
    ]


def alignment_frame(model: Transformer, text: LinkedText, budget: int) -> pd.DataFrame:
    """Return the rows of alignment.csv. The first pair and every other one choose heads."""
    if len(text.pairs) < 2 or not any(pair.possible for pair in text.pairs):
        pairs = len(text.pairs)
        raise UserError(f"alignment: expected two pairs or more with links, found {pairs}")
    names = [head for head in model.grid.heads() if head.kind == "dec_enc"]
    rows, _ = measure(model, names, text.halves(), budget, lambda sentences: None)
    return pd.DataFrame([["given", *row] for row in rows], columns=list(COLUMNS))


def cross_heads(named: Named | None, grid: HeadGrid) -> list[Head]:
    """Return these cross-attention heads, or all heads of the last layer that has some."""
    cross = [head for head in grid.heads() if head.kind == "dec_enc"]
    if not cross:
        raise UserError("heads: expected a model with cross-attention heads, found none")
    if named is None:
        return [head for head in cross if head.layer == cross[-1].layer]
    names = [name.name() if isinstance(name, Head) else name for name in named]
    heads = [read_address(name, grid, f"heads: {name}") for name in names]
    if not heads or any(head not in cross for head in heads):
        raise UserError(f"heads: expected some of dec_enc, found {', '.join(names) or 'none'}")
    return heads


@torch.inference_mode()
def link_words(
    model: Transformer, text: LinkedText, heads: Sequence[Head], budget: int
) -> list[Pairs]:
    """Return links of words by the mean weights of heads, at the output step, for every pair."""
    links: list[Pairs] = [[] for _ in text.pairs]
    cross = [head for head in model.grid.heads() if head.kind == "dec_enc"]
    places = [cross.index(head) for head in heads]
    for batch in in_order(text.ids, budget, first_device(model)):
        mean = cross_weights(model, batch)[:, places].mean(1, keepdim=True)
        by_word = word_attention(mean.cpu(), *text.numbers(batch.indices, "output"))
        for index, weights in zip(batch.indices, by_word[:, 0], strict=True):
            links[index] = _largest(weights, text.pairs[index])
    return links


def _largest(weights: Tensor, pair: LinkedPair) -> Pairs:
    """Return links of target words to their source words of largest weight, [words, words]."""
    if not pair.source or not pair.target:
        return []
    largest, where = weights[: len(pair.target), : len(pair.source)].max(-1)
    return [(int(where[word]), word) for word in largest.nonzero()[:, 0].tolist()]
