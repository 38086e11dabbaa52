"""Links between source and target words by cross-attention, of heads and of means of heads.

A target word is linked to the source word with the largest weight. Weights are summed over the
pieces of a source word and averaged over the pieces of a target word first.
"""

from typing import TYPE_CHECKING

from headcount.base.addresses import Head
from headcount.heads.head_measures import OUTSIDE

if TYPE_CHECKING:
    import pandas as pd

STEPS = ("output", "input")
"""The query that predicts a piece, and the query that has just read it (Chen et al. 2020)."""
WORDS = ("all", "content")
"""Whether special tokens and words that are only punctuation take part."""


def word_numbers(lengths: list[int]) -> list[int]:
    """Return the word of every piece, of words with these numbers of pieces."""
    return [word for word, length in enumerate(lengths) for _ in range(length)]


def query_numbers(lengths: list[int], marks: int, step: str) -> list[int]:
    """Return the target word that the query at each position predicts, or has just read."""
    words = [OUTSIDE] * marks + word_numbers(lengths)
    return [*words, OUTSIDE] if step == "output" else [OUTSIDE, *words]


def best_heads(frame: "pd.DataFrame", k: int, layer: int | None = None) -> list[Head]:
    """Return the k heads that rank first in a frame of alignment.csv, of one layer or of all.

    Ranks are by AER on the sentences that choose, at the output step and over content words.
    """
    heads = frame.query("system == 'head' and step == 'output' and words == 'content'")
    if layer is not None:
        heads = heads[heads["layer"] == layer]
    places = heads.nsmallest(k, "rank")[["kind", "layer", "head"]]
    return [Head(kind, int(layer), int(head)) for kind, layer, head in places.to_numpy()]
