"""Base classes of settings sections: frozen, strict, without unknown keys or infinite numbers."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

# Beyond these limits a typing error takes the machine down.
LARGEST = 10**6  # widths, budgets and other sizes that memory grows with
MOST_DRAWS = 10**4


def each_once(entries: list) -> list:
    """Return the list unchanged. Raises ValueError if it has an entry twice."""
    for position, entry in enumerate(entries):
        if entry in entries[:position]:
            raise ValueError(f"{entry!r} is listed twice; name each entry once")
    return entries


def _ascending(numbers: list[int]) -> list[int]:
    if numbers != sorted(set(numbers)):
        raise ValueError(f"expected each number once, the smallest first, found {numbers}")
    return numbers


Numbers = Annotated[list[Annotated[int, Field(ge=1)]], AfterValidator(_ascending)]
Percents = Annotated[list[Annotated[int, Field(ge=1, le=100)]], AfterValidator(_ascending)]
Threads = Annotated[int, Field(ge=1, le=1024)]
Faults = Iterator[tuple[str, Any]]  # messages with the condition under which they are raised


def refuse(*faults: tuple[str, Any]) -> None:
    """Raise ValueError with the first message whose condition is true."""
    for message, condition in faults:
        if condition:
            raise ValueError(message)


class Section(BaseModel):
    """Settings that cannot change once read. `True` and `'1'` are not numbers."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    flag_prefix: ClassVar[str] = ""
    """Start of flags on command lines that have two sections with keys of one name."""

    @model_validator(mode="after")
    def _check_faults(self) -> "Section":
        for kind in reversed(type(self).__mro__):
            for fault in vars(kind).get("_faults", lambda _: ())(self):
                refuse(fault)
        return self


class Compute(Section):
    """Device and threads of a job."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute; auto takes a GPU where there is one."""
    threads: Threads = 1
    """CPU threads of one job. In training, sums depend on it in their last bits."""


class Batches(Compute):
    """Device, threads and batch size of a job."""

    batch_tokens: int = Field(4096, ge=1, le=LARGEST)
    """Budget of one batch: sentences × the longest sentence on either side (subwords)."""


class Precision(Compute):
    """Device, threads and number format of a training."""

    precision: Literal["fp32", "bf16", "auto"] = "fp32"
    """Number format of matrix products in training. auto: bf16 where the processor is clearly
    faster and the model wide enough to gain, else fp32; a resumed training keeps it."""


class Resources(Batches, Precision):
    """Device, threads, number format and batch size of all jobs."""
