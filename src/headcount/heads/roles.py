"""What every head of a model attends to: one pass over a text, one over each treebank.

Attention weights live for one layer of one batch; only sums are kept.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headcount.base.settings.roles import RolesSettings
from headcount.data.batches import Batch, Ids, ParallelText, in_order
from headcount.data.trees import AlignedTree
from headcount.data.vocabulary import Vocabulary
from headcount.heads.head_measures import Confidence, Positions, RareWords, views
from headcount.heads.syntax import Syntax, best_offsets
from headcount.model.observed import watch_attention
from headcount.model.transformer import Transformer, first_device

Done = Callable[[int], object]


def _ignore(sentences: int) -> None:
    pass


class TextRoles:
    """What heads do on a parallel text: confidence, entropy, positions, rare words."""

    def __init__(
        self, model: Transformer, text: ParallelText, counts: Tensor, settings: RolesSettings
    ):
        """`counts`: how often each source id occurs in the training text, [vocabulary]."""
        self._model, self._text, self._settings = model, text, settings
        grid = model.grid
        self.confidence = Confidence(grid)
        self.positions = Positions(grid, text.longest, settings)
        self.rare = RareWords(grid, counts.to(first_device(model)), settings)

    @torch.inference_mode()
    def measure(self, done: Done = _ignore) -> None:
        """Read the whole text once, references as targets; `done` is told sentences finished."""
        model = self._model.eval()
        for batch in in_order(self._text, self._settings.batch_tokens, first_device(model)):
            self._start(batch)
            with watch_attention(model, self._add):
                model.decode(batch.tgt_in, model.encode(batch.src))
            done(len(batch.indices))

    def _start(self, batch: Batch) -> None:
        self._views = self._places = views(batch, self._settings)
        if self._settings.edges == "eos_is_token":
            self._places = views(batch, self._settings.model_copy(update={"eos": "keep"}))
        self.positions.start(self._places)
        self.rare.start(batch.src, self._views["enc_self"])

    def _add(self, kind: str, layer: int, weights: Tensor) -> None:
        self.confidence.add(kind, layer, weights, self._views[kind])
        if kind != "dec_enc":  # there, positions of two languages would be compared
            self.positions.add(kind, layer, weights, self._places[kind])
        if kind == "enc_self":
            self.rare.add(layer, weights, self._views[kind])


@torch.inference_mode()
def measure_syntax(
    model: Transformer,
    trees: list[AlignedTree],
    words: Vocabulary,
    treebank: str,
    settings: RolesSettings,
    done: Done = _ignore,
) -> list[dict[str, Any]]:
    """Accuracy of every encoder head for every relation on one treebank; see `Syntax.rows`."""
    syntax = Syntax(model.grid, best_offsets(trees, settings.relations), settings)
    sources = [source_ids(tree, words) for tree in trees]
    # A target is needed to make batches; encoding alone reads none.
    text = ParallelText(sources, [[] for _ in sources])
    model.eval()
    for batch in in_order(text, settings.batch_tokens, first_device(model)):
        of_batch = [trees[number] for number in batch.indices]
        syntax.start(of_batch, batch.indices, batch.src.device)
        with watch_attention(model, lambda kind, layer, weights: syntax.add(layer, weights)):
            model.encode(batch.src)
        done(len(batch.indices))
    return syntax.rows(treebank)


def source_ids(tree: AlignedTree, words: Vocabulary) -> Ids:
    """Subword ids of a tree's sentence, without EOS."""
    return words.ids(piece for token in tree.pieces for piece in token)


def count_ids(lines: list[Ids], size: int) -> Tensor:
    """How often each id occurs, [size]."""
    flat = np.fromiter((i for line in lines for i in line), dtype=np.int64)
    return torch.from_numpy(np.bincount(flat, minlength=size))
