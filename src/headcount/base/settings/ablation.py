"""Settings of masking and ablation: which heads of trained models are masked, in which order."""

from typing import ClassVar, Literal

from pydantic import Field

from headcount.base.settings.importance import ImportanceSettings
from headcount.base.settings.runs import Runs
from headcount.base.settings.section import LARGEST, MOST_DRAWS, Compute, Numbers, Percents, Section


class MaskingSettings(Section):
    """Translating with heads masked: in groups by importance, cumulatively, and at random."""

    groups: int = Field(8, ge=1, le=LARGEST)
    """Near-equal groups into which the ranked heads are cut."""
    draws: int = Field(3, ge=0, le=MOST_DRAWS)
    """Random rankings that are masked in the same way, as a control; 0 leaves it out."""
    test_sets: list[str] = []
    """Names of the test sets to translate, where a pair has them; empty: its first one."""
    sentences: int | None = Field(None, ge=1)
    """Translate only the first sentences of a test set, this many; without it all."""


class PruningSteps(Section):
    """Ranking and pruning of heads without further training (Michel et al.)."""

    steps: int = Field(10, ge=1, le=100)
    """Equal steps in which heads are pruned, from none to all of them."""
    draws: int = Field(3, ge=0, le=MOST_DRAWS)
    """Random orders of pruning, as a control; 0 leaves it out."""
    normalise: Literal["none", "layer_l2"] = "layer_l2"
    """Rank heads by importance as it is, or divided by the L2 norm of its layer and type."""
    reestimate: bool = False
    """Measure importance anew after each step of pruning, on the pruned model."""


class AblationSettings(PruningSteps):
    """Heads of trained models removed without further training (Michel et al.)."""

    runs: Runs = []
    """Training runs whose models are ablated, each one of `runs`; empty: none, and no tables."""
    test_sets: list[str] = []
    """Two test sets, where a pair has them, between which effects are compared; the first scores
    all else. The second may be `dev`. Empty: the first two; for a pair with one, this and `dev`."""
    sentences: int | None = Field(None, ge=1)
    """Translate only the first sentences of each, and of `dev`, this many; without it all."""
    signed: bool = False
    """Prune by signed importance too (`importance.abs: none`), harmful heads first."""
    measures: bool = False
    """Also prune by Fisher information, integrated gradients, Shapley values, means and norms."""
    updates: Numbers = []
    """Updates, of `train.keep_updates`, after which the model is pruned as well."""
    timed: Percents = [25, 50, 75]
    """Percentages of all heads that are really removed, for timing."""


class RerankSettings(ImportanceSettings):
    """Head importance, where it is measured anew."""

    flag_prefix: ClassVar[str] = "importance-"


class ClassifierSettings(PruningSteps, Compute):
    """Heads of a classifier removed without further training (Michel et al.)."""

    pairs: int | None = Field(None, ge=1)
    """Use only the first labelled pairs of each file, this many; without it all."""
