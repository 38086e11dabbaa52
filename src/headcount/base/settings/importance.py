"""Settings of head importance, of other measures, and of relevance."""

from typing import ClassVar, Literal

from pydantic import Field

from headcount.base.settings.section import MOST_DRAWS, Batches, Compute, Section


class ImportanceSettings(Batches):
    """Importance of a head: the size of ∂L/∂ξ at ξ = 1, ξ being the head's multiplier. L is the
    cross-entropy of a sentence, summed over its target tokens, without label smoothing."""

    abs: Literal["sentence", "token", "position", "batch", "none", "square"] = "sentence"
    """Quantity whose absolute value is averaged: ∂L/∂ξ of a sentence (the papers' formula), of a
    target token, a query position or a batch. `none`: −∂L/∂ξ. `square`: Fisher information."""
    data: Literal["train", "dev"] = "train"
    """The text whose sentences are drawn."""
    sentences: int = Field(1000, ge=2)
    """Sentence pairs drawn from it, the same for all runs; all of them where it has fewer."""


class MeasuresSettings(Section):
    """More measures of heads, if `ablation.measures`; loss and sentences are importance's."""

    points: int = Field(8, ge=1, le=10**4)
    """Integrated gradients: midpoints between no head and all heads, each as long as importance."""
    orders: int = Field(6, ge=2, le=MOST_DRAWS)
    """Shapley values: random orders in which heads are masked one by one, the same for all runs."""
    order_sentences: int = Field(64, ge=1)
    """Shapley values: sentence pairs, the first of those drawn for importance."""


class LrpSettings(Compute):
    """Relevance of heads to the model's predictions, by layer-wise relevance propagation."""

    flag_prefix: ClassVar[str] = "lrp-"

    rule: Literal["alpha_beta", "ratio"] = "alpha_beta"
    """Rule that ranks heads: relevance goes half to positive and half to negative contributions
    (the authors' later code), or is shared in proportion (the paper). Files have both."""
    max_sentences: int = Field(200, ge=1)
    """Sentences to measure on: the first of the dev set."""
