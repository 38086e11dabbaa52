"""Settings of head importance."""

from typing import Literal

from pydantic import Field

from headcount.base.settings.section import LARGEST, MOST_THREADS, Section


class ImportanceSettings(Section):
    """Importance of a head: the size of ∂L/∂ξ at ξ = 1, ξ being the head's multiplier."""

    abs: Literal["sentence", "token", "position", "batch", "none"] = "sentence"
    """What the absolute value is taken of: the derivative of a sentence's loss (the papers'
    formula), of each target token's loss, of the share of each query position, or of a batch's
    loss; or nowhere, then −∂L/∂ξ is averaged and a harmful head is below 0."""

    loss: Literal["nll", "smoothed"] = "nll"
    """Plain cross-entropy, or with the label smoothing that the model was trained with."""

    reduction: Literal["sum", "mean"] = "sum"
    """The loss of a sentence: the sum over its target tokens, or their mean."""

    normalise: Literal["none", "layer_l2"] = "none"
    """Leave the values as they are, or divide those of each layer and kind by their L2 norm."""

    data: Literal["train", "dev"] = "train"
    """The text whose sentences are drawn."""

    sentences: int = Field(1000, ge=2)
    """Sentence pairs drawn from it; all of them where it has fewer."""

    subset_seed: int = Field(1, ge=0)
    """Seed of that draw. It is not the run's, so that all runs are measured on the same pairs."""

    batch_tokens: int = Field(4096, ge=1, le=LARGEST)
    """Budget of one batch: sentences × the longest sentence on either side (subwords)."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute; auto takes a GPU where there is one."""

    threads: int = Field(1, ge=1, le=MOST_THREADS)
    """CPU threads of one job."""
