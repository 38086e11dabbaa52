"""Token-budget batches: sentences of similar length together, reproducible by seed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from headcount.base.errors import UserError
from headcount.data.vocabulary import BOS, EOS, PAD

Ids = list[int]

CPU = torch.device("cpu")


@dataclass(frozen=True)
class ParallelText:
    """Sentence pairs as ids of subwords, without EOS or PAD. Line i of the files is pair i."""

    src: list[Ids]
    tgt: list[Ids]

    def __len__(self) -> int:
        return len(self.src)

    def part(self, numbers: Sequence[int]) -> "ParallelText":
        """Return the pairs with these numbers."""
        return ParallelText([self.src[i] for i in numbers], [self.tgt[i] for i in numbers])

    def batch(self, indices: Sequence[int], device: torch.device = CPU) -> "Batch":
        """Return one padded batch of the pairs with these numbers."""
        pairs = np.array(indices).tolist()
        part = self.part(pairs)
        tgt_out = pad_sources(part.tgt)
        shifted = functional.pad(tgt_out[:, :-1], (1, 0), value=BOS)
        tgt_in = shifted.masked_fill(shifted == EOS, PAD)
        real = (tgt_out != PAD).flatten().nonzero().squeeze(1)
        tensors = (pad_sources(part.src), tgt_in, tgt_out, real)
        placed = (tensor.to(device, non_blocking=True) for tensor in tensors)  # waits for no GPU
        return Batch(pairs, *part.lengths.tolist(), *placed)

    @property
    def lengths(self) -> np.ndarray:
        """[2, pairs] Lengths of source and target of each pair, with EOS."""
        return np.array([[len(ids) + 1 for ids in side] for side in (self.src, self.tgt)])

    @property
    def longest(self) -> int:
        """Length of the longest side of any pair, with EOS."""
        return int(self.lengths.max(initial=0))


@dataclass(frozen=True)
class Batch:
    """Padded sentence pairs on one device: b sentences, k source and q target positions."""

    indices: list[int]  # numbers of the pairs in the text
    src_lengths: list[int]  # of each pair, with EOS
    tgt_lengths: list[int]
    src: Tensor  # [b, k], EOS at the end
    tgt_in: Tensor  # [b, q], BOS at the start
    tgt_out: Tensor  # [b, q], EOS at the end
    real: Tensor  # [target tokens], positions without padding in the flattened targets

    @property
    def target_tokens(self) -> int:
        """Target tokens with EOS, without padding."""
        return sum(self.tgt_lengths)

    def without_padding(self, targets: Tensor) -> Tensor:
        """Return the rows of [b, q, ...] at real target positions: [tokens, ...]."""
        return targets.flatten(0, 1).index_select(0, self.real)


def in_order(text: ParallelText, budget: int, device: torch.device = CPU) -> Iterator[Batch]:
    """Return batches of every pair once, sorted by length, for measuring. Budgets may be raised."""
    plan = BatchPlan(text, max(budget, text.longest), seed=0)
    return (text.batch(indices, device) for indices in plan.in_order())


def pad_sources(sources: Sequence[Ids]) -> Tensor:
    """Return sources [b, k] with EOS, padded at the end."""
    rows = [torch.tensor([*ids, EOS]) for ids in sources]
    return pad_sequence(rows, batch_first=True, padding_value=PAD)


def neighbours(lengths: Sequence[int], budget: int) -> Iterator[slice]:
    """Yield the longest slices that, padded to their longest item, stay within the budget."""
    start = longest = 0
    for place, length in enumerate(lengths):
        longest = max(longest, length)
        if place > start and (place + 1 - start) * longest > budget:
            yield slice(start, place)
            start, longest = place, length
    if lengths:
        yield slice(start, len(lengths))


class BatchPlan:
    """Assignment of pairs to batches: a function of text, budget, seed and epoch.

    A batch has at most `budget` tokens: its sentences × its longest sentence, with EOS.
    """

    def __init__(self, text: ParallelText, budget: int, seed: int):
        if not len(text):
            raise UserError("there is no sentence pair to make batches of; see the text's counts")
        self.budget = budget
        self.seed = seed
        lengths = text.lengths
        self.src_lengths, self.lengths = lengths[0], lengths.max(0)
        longest = int(self.lengths.argmax())
        if self.lengths[longest] > budget:
            size = f"pair {longest + 1} has {self.lengths[longest]} subwords with EOS"
            raise UserError(f"{size}, more than the batch budget of {budget}; raise batch_tokens")

    def epoch(self, number: int) -> list[np.ndarray]:
        """Return the batches of one epoch in training order, each an array of pair numbers."""
        generator = np.random.default_rng([self.seed, number])
        ties = generator.permutation(len(self.lengths))
        batches = self._cut(np.lexsort((ties, self.src_lengths, self.lengths)))
        return [batches[i] for i in generator.permutation(len(batches))]

    def in_order(self) -> list[np.ndarray]:
        """Return the batches of all pairs sorted by length, each an array of pair numbers."""
        return self._cut(np.lexsort((self.src_lengths, self.lengths)))

    def _cut(self, order: np.ndarray) -> list[np.ndarray]:
        """Cut pairs, sorted by length, into the largest batches that the budget allows."""
        return [order[part] for part in neighbours(self.lengths[order].tolist(), self.budget)]
