"""Settings of timing pruned models."""

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, model_validator

from headcount.base.settings.section import LARGEST, MOST_THREADS, Section


def _each_once(sizes: list[int]) -> list[int]:
    if len(set(sizes)) < len(sizes):
        raise ValueError(f"expected each batch size once, found {sizes}")
    return sizes


BatchSize = Annotated[int, Field(ge=1, le=LARGEST)]
BatchSizes = Annotated[list[BatchSize], AfterValidator(_each_once), Field(min_length=1)]


class SpeedSettings(Section):
    """Timing every pruned model beside the baseline, by the search of `decode`."""

    flag_prefix: ClassVar[str] = "speed-"

    sentences: int = Field(128, ge=1)
    """Sentences that one measurement encodes, or translates: the first ones of the dev set."""

    batch_sizes: BatchSizes = [1, 16, 64]
    """Sentences at once; every size is measured."""

    repeats: int = Field(5, ge=1, le=LARGEST)
    """Measured rounds; in each the models take turns. One more before them is not counted."""

    threads: int = Field(1, ge=1, le=MOST_THREADS)
    """CPU threads of the model that is timed; nothing else runs beside it."""

    @model_validator(mode="after")
    def _batches_can_be_full(self) -> "SpeedSettings":
        if self.sentences < max(self.batch_sizes):
            raise ValueError(
                f"speed.sentences: expected at least {max(self.batch_sizes)}, the largest of "
                f"speed.batch_sizes, found {self.sentences}"
            )
        return self
