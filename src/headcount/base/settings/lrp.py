"""Settings of layer-wise relevance propagation."""

from typing import ClassVar, Literal

from pydantic import Field

from headcount.base.settings.section import MOST_THREADS, Section


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
