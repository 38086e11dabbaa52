"""Token-budget batches: sentences of like length together, the same for every run of a seed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from headcount.base.errors import UserError
from headcount.data.lines import clean_lines
from headcount.data.vocabulary import BOS, EOS, PAD, Vocabulary

Ids = list[int]


@dataclass(frozen=True)
class ParallelText:
    """Sentence pairs as subword ids, without EOS; line i of the files is pair i."""

    src: list[Ids]
    tgt: list[Ids]

    def __len__(self) -> int:
        return len(self.src)

    @property
    def longest(self) -> int:
        """Length of the longest side of any pair, EOS counted."""
        return max((len(ids) + 1 for side in (self.src, self.tgt) for ids in side), default=0)


@dataclass(frozen=True)
class Batch:
    """Padded sentence pairs. b sentences, k source and q target positions."""

    ids: list[int]  # which pairs of the text
    src: Tensor  # [b, k], EOS at the end
    tgt_in: Tensor  # [b, q], BOS at the start
    tgt_out: Tensor  # [b, q], EOS at the end
    real: Tensor  # [target tokens], where in the flattened targets there is no padding

    @property
    def target_tokens(self) -> int:
        """Real target tokens, EOS included."""
        return len(self.real)

    @property
    def source_tokens(self) -> int:
        """Real source tokens, EOS included."""
        return int((self.src != PAD).sum())

    def to(self, device: torch.device) -> "Batch":
        """The same batch on another device."""
        tensors = (
            t.to(device, non_blocking=True)
            for t in (self.src, self.tgt_in, self.tgt_out, self.real)
        )
        return Batch(self.ids, *tensors)


def read_parallel_text(
    src: Path, tgt: Path, src_words: Vocabulary, tgt_words: Vocabulary
) -> ParallelText:
    """Both sides of a BPE-encoded text. Raises UserError if their numbers of lines differ."""
    sides = []
    for path, vocabulary in ((src, src_words), (tgt, tgt_words)):
        lines = clean_lines(path)
        sides.append([vocabulary.ids(line.split(" ")) if line else [] for line in lines])
    if len(sides[0]) != len(sides[1]):
        raise UserError(
            f"{src} has {len(sides[0])} lines, {tgt} has {len(sides[1])}; "
            "make them again from the text"
        )
    return ParallelText(*sides)


def first_pairs(
    src: Path, tgt: Path, src_words: Vocabulary, tgt_words: Vocabulary, number: int | None
) -> ParallelText:
    """The first pairs whose source has a word, `number` of them, None for all.

    Raises UserError if there is none, or the numbers of lines differ.
    """
    whole = read_parallel_text(src, tgt, src_words, tgt_words)
    kept = [place for place, ids in enumerate(whole.src) if ids][:number]
    if not kept:
        raise UserError(f"{src}: expected sentences, found none with a word")
    return ParallelText([whole.src[i] for i in kept], [whole.tgt[i] for i in kept])


def collate(text: ParallelText, ids: Sequence[int]) -> Batch:
    """One padded batch of the pairs with these numbers."""
    tgt_out = _padded([[*text.tgt[i], EOS] for i in ids])
    return Batch(
        ids=[int(i) for i in ids],
        src=_padded([[*text.src[i], EOS] for i in ids]),
        tgt_in=_padded([[BOS, *text.tgt[i]] for i in ids]),
        tgt_out=tgt_out,
        real=(tgt_out != PAD).flatten().nonzero().squeeze(1),
    )


def pad_sources(sources: Sequence[Ids]) -> Tensor:
    """Sources [b, k] with EOS, padded at the end."""
    return _padded([[*ids, EOS] for ids in sources])


class BatchPlan:
    """Which pairs make which batch: a function of the text, the budget, the seed and the epoch.

    A batch's size is sentences × its longest sentence on either side, EOS counted, and stays
    within the budget. Pairs are sorted by length with ties in random order, cut into batches,
    and the batches are shuffled.
    """

    def __init__(self, text: ParallelText, budget: int, seed: int):
        if not len(text):
            raise UserError(
                "there is no sentence pair to make batches of; look at the text step's counts"
            )
        self.text = text
        self.budget = budget
        self.seed = seed
        self.src_lengths = np.array([len(ids) + 1 for ids in text.src])
        self.lengths = np.maximum(self.src_lengths, [len(ids) + 1 for ids in text.tgt])
        longest = int(self.lengths.argmax())
        if self.lengths[longest] > budget:
            raise UserError(
                f"pair {longest + 1} has {self.lengths[longest]} subwords with EOS, more than the "
                f"batch budget of {budget}; raise train.batch_tokens or lower text.max_words"
            )

    def epoch(self, number: int) -> list[np.ndarray]:
        """The batches of one epoch in training order, each an array of pair numbers."""
        generator = np.random.default_rng([self.seed, number])
        ties = generator.permutation(len(self.text))
        batches = self._cut(np.lexsort((ties, self.src_lengths, self.lengths)))
        return [batches[i] for i in generator.permutation(len(batches))]

    def in_order(self) -> Iterator[Batch]:
        """Every pair once, sorted by length: for measuring."""
        order = np.lexsort((self.src_lengths, self.lengths))
        return (collate(self.text, ids) for ids in self._cut(order))

    def _cut(self, order: np.ndarray) -> list[np.ndarray]:
        """Cut pairs, sorted by length, into the largest batches that the budget allows."""
        batches, start = [], 0
        lengths = self.lengths[order]
        for position, length in enumerate(lengths.tolist()):
            if (position + 1 - start) * length > self.budget:
                batches.append(order[start:position])
                start = position
        return [*batches, order[start:]]


def _padded(rows: list[Ids]) -> Tensor:
    width = max(map(len, rows))
    table = np.full((len(rows), width), PAD, dtype=np.int64)
    for row, ids in zip(table, rows, strict=True):
        row[: len(ids)] = ids
    return torch.from_numpy(table)
