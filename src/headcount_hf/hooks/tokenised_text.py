"""Sentence pairs in the ids of a library's model, and their batches."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from headcount.data.batches import Batch, Ids, ParallelText

Source = Ids | Tensor
"""Input of an encoder: ids, or features [channels, frames] of sound."""


@dataclass(frozen=True)
class TokenisedText(ParallelText):
    """Pairs with all ids that a tokeniser adds, such as ends and languages."""

    src: list[Source]
    tgt_in: list[Ids]  # input of the decoder, as long as `tgt`
    pad: int
    device: torch.device = torch.device("cpu")

    def part(self, numbers: Sequence[int]) -> "TokenisedText":
        """Return the pairs with these numbers."""
        src, tgt, tgt_in = (
            [side[i] for i in numbers] for side in (self.src, self.tgt, self.tgt_in)
        )
        return replace(self, src=src, tgt=tgt, tgt_in=tgt_in)

    @property
    def lengths(self) -> np.ndarray:
        """Lengths of source and target of every pair [2, pairs], with added ids."""
        return np.array([[*map(source_length, self.src)], [*map(len, self.tgt)]])

    def resident(self, device: torch.device) -> "TokenisedText":
        """Return the same text with batches on a device."""
        return replace(self, device=device)

    def batch(self, indices: Sequence[int]) -> Batch:
        """Return one padded batch of the pairs with these numbers."""
        pairs = np.array(indices).tolist()
        part = self.part(pairs)
        lengths = [len(ids) for ids in part.tgt]
        real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        src, tgt_in, tgt_out = (
            stacked(side, self.pad).to(self.device) for side in (part.src, part.tgt_in, part.tgt)
        )
        return Batch(
            indices=pairs,
            src_lengths=[*map(source_length, part.src)],
            tgt_lengths=lengths,
            src=src,
            tgt_in=tgt_in,
            tgt_out=tgt_out,
            real=real.flatten().nonzero().squeeze(1).to(self.device),
        )


def source_length(source: Source) -> int:
    """Return the number of ids or frames of a source."""
    return source.shape[-1] if isinstance(source, Tensor) else len(source)


def stacked(sources: Sequence[Source], pad: int) -> Tensor:
    """Return ids [b, k], padded at the end, or features [b, channels, frames] of one length."""
    if isinstance(sources[0], Tensor):
        return torch.stack(list(sources))
    return pad_sequence([torch.tensor(ids, dtype=torch.long) for ids in sources], True, pad)
