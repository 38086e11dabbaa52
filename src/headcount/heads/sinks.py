"""Attention sinks: shares of attention on tokens that are no words, and measures without them."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from headcount.base.addresses import HeadGrid
from headcount.data.batches import Batch, Ids
from headcount.data.words import LANGUAGE, AnySegmenter
from headcount.heads.head_measures import AttentionMeasure, Confidence, Positions, View

CONTENT, SPECIAL, CODE, PUNCTUATION, PADDING = range(5)
SINKS = ("sink_special", "sink_code", "sink_punctuation")
LIMIT = 0.5
"""Tables use numbers over content words for a head with more attention on special tokens."""


def token_classes(segmenter: AnySegmenter, sentences: Iterable[Ids]) -> list[Tensor]:
    """Return the class of every token, without start and end (mBART: without codes)."""
    rows = []
    for ids in sentences:
        pieces = segmenter.vocabulary.pieces(ids)
        marks = segmenter.punctuation(pieces)
        both = zip(pieces, marks, strict=True)
        rows.append(torch.tensor([_class(segmenter, *piece) for piece in both], dtype=torch.long))
    return rows


def _class(segmenter: AnySegmenter, piece: str, mark: bool) -> int:
    """Return the class of a piece. Names such as `<s>` and `<mask>` belong to no language."""
    if piece in segmenter.special:
        return SPECIAL if piece.startswith("<") and not piece.startswith(LANGUAGE) else CODE
    return PUNCTUATION if mark else CONTENT


class Sinks(AttentionMeasure):
    """Shares of attention on special tokens, language codes and punctuation, of every head.

    `confidence` and `positions` are measured on content words: other queries are left out, and
    weights are renormalised over content keys.
    """

    def __init__(self, grid: HeadGrid, classes: Sequence[list[Tensor]], longest: int):
        """`classes`: `token_classes` of both sides. `longest`: as in `Positions`."""
        super().__init__(grid)
        self._classes = classes
        self._sums, self._queries = np.zeros((len(SINKS), grid.size)), np.zeros(grid.size)
        self.confidence, self.positions = Confidence(grid), Positions(grid, longest)

    def start(self, batch: Batch, views: dict[str, View]) -> None:
        """Find sinks and content words of a batch."""
        mark = torch.tensor([SPECIAL])
        src, tgt = ([side[n] for n in batch.indices] for side in self._classes)
        rows = [torch.cat([row, mark]) for row in src], [torch.cat([mark, row]) for row in tgt]
        source, target = (pad_sequence(side, True, PADDING).to(batch.src.device) for side in rows)
        self._sinks, self._content = {}, {}
        for kind in views:
            queries = source if kind == "enc_self" else target
            keys = target if kind == "dec_self" else source
            marked = [keys == sink for sink in (SPECIAL, CODE, PUNCTUATION)]
            self._sinks[kind] = torch.stack(marked, -1).float()
            words = keys == CONTENT
            self._content[kind] = View((queries == CONTENT) & words.any(-1, keepdim=True), words)
        for measure in (self.confidence, self.positions):
            measure.start(batch, self._content)

    def add(self, kind: str, layer: int, weights: Tensor, view: View) -> None:
        span, queries = self._grid.span(kind, layer), view.queries.to(weights.dtype)
        sinks = self._sinks[kind].to(weights.dtype)
        sums = torch.einsum("bq,bhqk,bks->sh", queries, weights, sinks)
        self._sums[:, span] += sums.double().cpu().numpy()
        self._queries[span] += view.queries.sum().item()
        content = self._content[kind]
        weights = weights * content.keys[:, None, None, :]
        weights /= weights.sum(-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)
        for measure in (self.confidence, self.positions):
            if kind in measure.kinds:
                measure.add(kind, layer, weights, content)

    def shares(self) -> dict[str, np.ndarray]:
        """Return the mean share (0 to 1) of each of `SINKS` over queries that are no BOS or EOS."""
        with np.errstate(invalid="ignore"):
            return dict(zip(SINKS, self._sums / self._queries, strict=True))

    def parked(self) -> np.ndarray:
        """Return True for heads with over half of their attention on special tokens and codes."""
        shares = self.shares()
        return shares["sink_special"] + shares["sink_code"] > LIMIT

    def means(self) -> dict[str, np.ndarray]:
        """Return shares, numbers over content words, and `content`, 1 where tables use these."""
        words = {f"{name}_content": values for name, values in self.confidence.means().items()}
        return self.shares() | words | {"content": self.parked().astype(float)}
