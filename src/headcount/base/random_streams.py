"""Random streams that must not meet: their numbers keep draws of one seed apart."""

from enum import IntEnum, unique

import numpy as np


@unique
class Stream(IntEnum):
    """Kinds of draws. The order of batches and the random masks of scored models have no number."""

    GATES = 0x47415445  # of an update, the noise of every gate
    HEAD_MASK = 0x4D41534B  # of an update, which heads are masked, or whether any are
    KEPT_HEADS = 0x44524157  # of a pruned run, the order in which random heads are kept
    PAIRS = 0x50414952  # of a corpus, which of its pairs are drawn
    DROPOUT = 0x44524F50  # of a batch of an update, the seed of torch's generators
    SUBSET = 0x53554253  # of an update, the noise of every head of which a number is to stay
    SHAPLEY = 0x53484150  # of an order of Shapley values, in which heads are switched off
    ENTAILMENT = 0x4D4E4C49  # of labelled pairs, which are left out of fine-tuning

    def generator(self, seed: int, *counters: int) -> np.random.Generator:
        """Return a new generator of this stream, at a place that the counters number."""
        return np.random.default_rng([seed, *counters, self])

    def number(self, seed: int, *counters: int) -> int:
        """Return a seed for another library's generator: the first draw of this stream's."""
        return int(self.generator(seed, *counters).integers(1 << 63))
