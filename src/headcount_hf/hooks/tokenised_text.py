"""Sentence pairs in the ids of a model that is not ours, and their batches."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headcount.data.batches import Batch, Ids, ParallelText

Source = Ids | Tensor
"""What an encoder reads: ids, or features [channels, frames] of sound."""


@dataclass(frozen=True)
class TokenisedText(ParallelText):
    """Pairs with all that a tokeniser of others adds to them, such as ends and languages."""

    src: list[Source]
    tgt_in: list[Ids]  # what the decoder reads to say `tgt`, of the same length
    pad: int

    def part(self, numbers: Sequence[int]) -> "TokenisedText":
        """The pairs with these numbers."""
        src, tgt, tgt_in = (
            [side[i] for i in numbers] for side in (self.src, self.tgt, self.tgt_in)
        )
        return TokenisedText(src=src, tgt=tgt, tgt_in=tgt_in, pad=self.pad)

    @property
    def lengths(self) -> np.ndarray:
        """[2, pairs] Lengths of source and target of each pair, all added ids counted."""
        return np.array([[source_length(each) for each in self.src], [len(t) for t in self.tgt]])

    def resident(self, device: torch.device) -> "_Batches":
        """What makes batches on a device."""
        return _Batches(self, device)


@dataclass(frozen=True)
class _Batches:
    """A text, of which every batch is padded on the host, and then goes to the device."""

    text: TokenisedText
    device: torch.device

    def batch(self, indices: Sequence[int]) -> Batch:
        """One padded batch of the pairs with these numbers, in the ids of the text."""
        pairs = np.array(indices).tolist()
        part = self.text.part(pairs)
        tgt_lengths = [len(ids) for ids in part.tgt]
        widest = max(tgt_lengths)
        real = [row * widest + place for row, n in enumerate(tgt_lengths) for place in range(n)]
        return Batch(
            indices=pairs,
            src_lengths=[source_length(each) for each in part.src],
            tgt_lengths=tgt_lengths,
            src=stacked(part.src, part.pad).to(self.device),
            tgt_in=stacked(part.tgt_in, part.pad).to(self.device),
            tgt_out=stacked(part.tgt, part.pad).to(self.device),
            real=torch.tensor(real, device=self.device),
        )


def source_length(source: Source) -> int:
    """Ids of a source, or frames."""
    return source.shape[-1] if isinstance(source, Tensor) else len(source)


def stacked(sources: Sequence[Source], pad: int) -> Tensor:
    """Ids [b, k], padded at the end, or features [b, channels, frames], which are equally long."""
    if isinstance(sources[0], Tensor):
        return torch.stack(list(sources))
    return torch.tensor(
        [ids + [pad] * (max(map(len, sources)) - len(ids)) for ids in sources], dtype=torch.long
    )
