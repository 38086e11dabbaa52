"""Settings of masking and ablation: which heads of trained models are masked, in which order."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from headcount.base.errors import UserError
from headcount.base.settings.importance import ImportanceSettings
from headcount.base.settings.run_lists import Runs
from headcount.base.settings.section import LARGEST, MOST_DRAWS, Compute, Section


def _ascending(numbers: list[int]) -> list[int]:
    if numbers != sorted(set(numbers)):
        raise ValueError(f"expected each number once, the smallest first, found {numbers}")
    return numbers


Numbers = Annotated[list[Annotated[int, Field(ge=1)]], AfterValidator(_ascending)]
Percents = Annotated[list[Annotated[int, Field(ge=1, le=100)]], AfterValidator(_ascending)]


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


def check_groups(groups: int, heads: int) -> None:
    """Raise UserError if a model has fewer heads than groups."""
    if groups > heads:
        raise UserError(
            f"masking.groups: expected at most {heads}, the number of the model's heads, "
            f"found {groups}"
        )


class PruningSteps(Section):
    """How heads are ranked and pruned, without further training (Michel et al.)."""

    steps: int = Field(10, ge=1, le=100)
    """Equal steps in which heads are pruned, from none to all of them."""

    draws: int = Field(3, ge=0, le=MOST_DRAWS)
    """Random orders of pruning, as a control; 0 leaves it out."""

    normalise: Literal["none", "layer_l2"] = "layer_l2"
    """Rank heads by their importance as it is, or after dividing the importance of each layer and
    attention type by its L2 norm."""

    reestimate: bool = False
    """Measure importance anew after each step of pruning, on the model without the heads that are
    pruned already."""


class AblationSettings(PruningSteps):
    """Heads of trained models removed without further training (Michel et al.)."""

    runs: Runs = []
    """Training runs whose models are ablated, each one of `runs`; empty: none, and no tables."""

    test_sets: list[str] = []
    """Two test sets, `dev` allowed, where a pair has them. The effects of removing heads are
    compared between them, and the first one scores all else. Empty: the first two; for a pair that
    has one, this and `dev`."""

    sentences: int | None = Field(None, ge=1)
    """Translate only the first sentences of each, and of `dev`, this many; without it all."""

    signed: bool = False
    """Prune by signed importance too, harmful heads first: importance as `importance.abs: none` has
    it, measured for that."""

    measures: bool = False
    """Measure heads in more ways, as the section `measures` says, and prune by each of them too:
    Fisher information, integrated gradients, Shapley values, mean ablation, output norm."""

    updates: Numbers = []
    """Updates of the training after which the model is pruned as well; each one of
    `train.keep_updates`."""

    timed: Percents = [25, 50, 75]
    """Percentages of all heads that are really removed, for timing."""


class RerankSettings(ImportanceSettings):
    """Head importance, where it is measured anew."""

    flag_prefix: ClassVar[str] = "importance-"


class ClassifierSettings(PruningSteps, Compute):
    """Heads of a classifier removed without further training (Michel et al.)."""

    pairs: int | None = Field(None, ge=1)
    """Use only the first labelled pairs of each file, this many; without it all."""

    def pruning(self) -> AblationSettings:
        """Return how heads are ranked and pruned, as settings of translation models."""
        return AblationSettings(**self.model_dump(include={*PruningSteps.model_fields}))
