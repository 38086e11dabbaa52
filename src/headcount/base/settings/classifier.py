"""Settings of ablation of classifiers, which no experiment has: flags of a script alone."""

from typing import Literal

from pydantic import Field

from headcount.base.settings.ablation import AblationSettings
from headcount.base.settings.section import MOST_DRAWS, MOST_THREADS, Section


class ClassifierSettings(Section):
    """Heads of a classifier removed without further training (Michel et al.)."""

    pairs: int | None = Field(None, ge=1)
    """Use only this many labelled pairs of each file, the first ones; without it all."""

    steps: int = Field(10, ge=1, le=100)
    """Equal steps in which heads are pruned, from none to all of them."""

    draws: int = Field(3, ge=0, le=MOST_DRAWS)
    """Random orders of pruning, as a control; 0 leaves it out."""

    normalise: Literal["none", "layer_l2"] = "layer_l2"
    """Rank heads by their importance as it is, or after dividing that of each layer by its L2
    norm."""

    reestimate: bool = False
    """Measure importance anew after each step of pruning, with the heads silent that are pruned
    already."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute; auto takes a GPU where there is one."""

    threads: int = Field(1, ge=1, le=MOST_THREADS)
    """CPU threads."""

    def pruning(self) -> AblationSettings:
        """How heads are ranked and pruned, as it is said of translation models."""
        shared = {"steps", "draws", "normalise", "reestimate"}
        return AblationSettings(**self.model_dump(include=shared))
