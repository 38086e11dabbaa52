"""Settings of decoding."""

from typing import Literal

from pydantic import Field

from headcount.base.settings.section import LARGEST, MOST_THREADS, Section


class DecodeSettings(Section):
    """Beam search."""

    beam: int = Field(4, ge=1, le=1000)
    """Hypotheses kept per sentence; 1 is greedy search."""

    length_penalty: float = Field(0.6, ge=0)
    """α in score = log-probability / ((5 + length) / 6)^α; 0 compares plain log-probabilities."""

    max_source: int = Field(1000, ge=1, le=LARGEST)
    """Longest source; a longer one is cut to this many subwords, and counted as truncated."""

    max_length_factor: float = Field(2.0, gt=0, le=1000)
    """Longest output with its EOS, as a multiple of the source length (subwords) …"""

    max_length_extra: int = Field(10, ge=1, le=LARGEST)
    """… plus this many subwords."""

    batch_tokens: int = Field(4096, ge=1, le=LARGEST)
    """Budget of one batch: sentences × the longest source sentence (subwords)."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to decode; auto takes a GPU where there is one."""

    threads: int = Field(1, ge=1, le=MOST_THREADS)
    """CPU threads; each takes whole batches, so their number changes no result."""
