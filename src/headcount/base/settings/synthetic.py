"""Settings of the generated corpus."""

from pydantic import Field

from headcount.base.settings.section import Section


class SyntheticSettings(Section):
    """How much of the artificial language to generate. Same settings, same text."""

    seed: int = Field(1, ge=1, le=10**9)
    """Seed of the generator."""

    train_pairs: int = Field(30000, ge=1, le=10**8)
    """Sentence pairs for training."""

    dev_pairs: int = Field(1000, ge=1, le=10**8)
    """Sentence pairs for validation."""

    test_pairs: int = Field(1000, ge=1, le=10**8)
    """Sentence pairs of the test set."""
