"""Random streams that must not meet: their numbers keep draws of one seed apart."""

from enum import IntEnum, unique

import numpy as np


@unique
class Stream(IntEnum):
    """What is drawn.

    Two kinds of draws have no number, and are of different jobs: the order of batches, by seed and
    epoch, and random masks that a trained model is scored under, by seed and draw.
    """

    GATES = 0x47415445  # of an update, the noise of every gate
    HEAD_MASK = 0x4D41534B  # of an update, which heads are masked, or whether any are
    KEPT_HEADS = 0x44524157  # of a pruned run, the order in which random heads are kept
    PAIRS = 0x50414952  # of a corpus, which of its pairs are drawn
    DROPOUT = 0x44524F50  # of a batch of an update, the seed of torch's generators
    SUBSET = 0x53554253  # of an update, the noise of every head of which a number is to stay
    SHAPLEY = 0x53484150  # of an order of Shapley values, in which heads are switched off
    ENTAILMENT = 0x4D4E4C49  # of labelled pairs, which are left out of fine-tuning

    def generator(self, seed: int, *counters: int) -> np.random.Generator:
        """A fresh generator of this stream, at a place that the counters number.

        torch's own generators know nothing of it, but for `DROPOUT`.
        """
        return np.random.default_rng([seed, *counters, self])

    def number(self, seed: int, *counters: int) -> int:
        """A seed for generators of others, the first draw of that generator."""
        return int(self.generator(seed, *counters).integers(1 << 63))
