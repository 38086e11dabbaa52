"""Settings of head importance, and of relevance."""

from typing import ClassVar, Literal

from pydantic import Field

from headcount.base.settings.section import LARGEST, MOST_DRAWS, MOST_THREADS, Section


class ImportanceSettings(Section):
    """Importance of a head: the size of ∂L/∂ξ at ξ = 1, ξ being the head's multiplier."""

    abs: Literal["sentence", "token", "position", "batch", "none", "square"] = "sentence"
    """What the absolute value is taken of: the derivative of a sentence's loss (the papers'
    formula), of each target token's loss, of the share of each query position, or of a batch's
    loss; or nowhere, then −∂L/∂ξ is averaged and a harmful head is below 0. With `square` the
    derivative of a sentence's loss is squared in place of that: Fisher information, in nats²."""

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


class MeasuresSettings(Section):
    """More measures of heads, if `ablation.measures`; loss and sentences are importance's."""

    points: int = Field(8, ge=1, le=10**4)
    """Integrated gradients: midpoints between no head and all heads, each as long as importance."""

    orders: int = Field(6, ge=2, le=MOST_DRAWS)
    """Shapley values: random orders in which heads are switched off one after another, the same
    for all runs."""

    order_sentences: int = Field(64, ge=1)
    """Shapley values: sentence pairs, the first of those drawn for importance."""

    order_tolerance: float = Field(0.0, ge=0, lt=1)
    """Shapley values: an order is cut short once the loss is as near that of no head as this share
    of what all heads take off; the heads left share the rest evenly. 0: each order to its end."""


class LrpSettings(Section):
    """Relevance of heads to the model's predictions, by layer-wise relevance propagation."""

    flag_prefix: ClassVar[str] = "lrp-"

    rule: Literal["alpha_beta", "ratio"] = "alpha_beta"
    """How an output's relevance is shared out: positive and negative contributions apart, half
    each (the authors' later code; never negative), or in proportion (the paper; signed)."""

    attention: Literal["full", "value_only"] = "full"
    """Relevance of attention weights goes on to queries and keys, or weights count as given."""

    layernorm: Literal["jacobian", "frozen_std", "identity"] = "jacobian"
    """Layer norm by its derivative, by the same with its standard deviation as a constant, or
    passed over."""

    residual: Literal["proportional", "half"] = "proportional"
    """A residual sum: by the rule, or half to each side."""

    bias: Literal["spread", "drop"] = "spread"
    """A bias counts evenly among the contributions of all inputs, or not at all."""

    prefix: Literal["reference", "hypothesis"] = "reference"
    """Target words so far: the reference's, or those of the model's own greedy translation."""

    positions: Literal["include_eos", "exclude_eos"] = "include_eos"
    """Whether relevance of encoder heads at the source's end symbol counts."""

    max_sentences: int = Field(200, ge=1)
    """Sentences to measure on: the first of the dev set."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute; auto takes a GPU where there is one."""

    threads: int = Field(1, ge=1, le=MOST_THREADS)
    """CPU threads of one job."""
