"""Settings of decoding, and of timing it."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator

from headcount.base.settings.section import (
    LARGEST,
    Batches,
    Faults,
    Numbers,
    Section,
    Threads,
    refuse,
)

FP32 = "float32"
ComputeType = Literal[
    *("float32", "float16", "bfloat16", "int16"),
    *("int8", "int8_float32", "int8_float16", "int8_bfloat16"),
]
"""CTranslate2's names of number formats. A processor supports some of them."""


class DecodeSettings(Batches):
    """Beam search of headcount. Threads take whole batches, so their number changes no result."""

    beam: int = Field(4, ge=1, le=1000)
    """Hypotheses per sentence; 1 is greedy search."""
    length_penalty: float = Field(0.6, ge=0)
    """α in score = log-probability / ((5 + length) / 6)^α; 0 compares plain log-probabilities."""
    max_source: int = Field(1000, ge=1, le=LARGEST)
    """Longest source; a longer one is cut to this many subwords, and counted as truncated."""
    max_length_factor: float = Field(2.0, gt=0, le=1000)
    """Longest output with its EOS, as a multiple of the source length (subwords) …"""
    max_length_extra: int = Field(10, ge=1, le=LARGEST)
    """… plus this many subwords."""


class TranslateSettings(DecodeSettings):
    """Beam search, and the program that does it."""

    engine: Literal["headcount", "ctranslate2"] = "headcount"
    """Program that translates test sets and texts: headcount, or CTranslate2 on the CPU (see the
    guide on export). Jobs that mask heads always use headcount."""
    compute_type: ComputeType = FP32
    """Number format of CTranslate2. The processor must support it; headcount has float32 only."""

    @field_validator("engine", mode="before")
    @classmethod
    def _refuse_old_name(cls, engine: Any) -> Any:
        message = "it is now ctranslate2, with compute_type: int8"
        refuse((message, engine == "ctranslate2-int8"))
        return engine

    def _faults(self) -> Faults:
        other = self.engine != "headcount"
        yield f"engine: {self.engine} needs a CPU", other and self.device == "cuda"
        wrong = not other and self.compute_type != FP32
        yield f"compute_type: {self.compute_type} needs engine: ctranslate2", wrong


class GenerateSettings(Batches):
    """Beam search of Hugging Face's library, for models that stay there."""

    batch_tokens: int = Field(1024, ge=1, le=LARGEST)
    """Budget of one batch: sentences × the longest source sentence (subwords)."""
    beam: int = Field(4, ge=1, le=1000)
    """Hypotheses per sentence; 1 is greedy search."""
    length_penalty: float = Field(0, ge=0)
    """α in score = log-probability / length^α, the library's formula; 0: log-probability."""
    max_new_tokens: int = Field(200, ge=1, le=LARGEST)
    """Longest output (subwords)."""


class SpeedSettings(Section):
    """Timing pruned models beside the baseline, without controls and models from scratch."""

    flag_prefix: ClassVar[str] = "speed-"

    sentences: int = Field(128, ge=1)
    """Sentences that one measurement encodes, or translates: the first ones of the dev set."""
    batch_sizes: Numbers = []
    """Sentences at once, as in `[1, 16, 64]`; every size is measured. Empty: nothing is timed."""
    repeats: int = Field(5, ge=1, le=LARGEST)
    """Measured rounds, after one that is not counted. In each round the models take turns."""
    threads: Threads = 1
    """CPU threads of the model that is timed, in place of `resources.threads`."""

    def _faults(self) -> Faults:
        largest = max(self.batch_sizes, default=0)
        yield f"sentences: expected a whole batch, {largest}", self.sentences < largest


class SavingsSettings(Section):
    """Measuring what pruned models save, in our search and in CTranslate2 on the CPU."""

    flag_prefix: ClassVar[str] = "savings-"

    compute_types: list[ComputeType] = []
    """Number formats of CTranslate2, float32 among them. Empty: nothing is measured."""
    batch_sizes: Numbers = [1, 64]
    """Sentences at once that are timed. The largest size decides which run saves most."""
    sentences: int = Field(128, ge=1)
    """Sentences that one measurement of time translates: the first ones of the dev set."""
    seconds: float = Field(0.5, ge=0, le=3600)
    """Least seconds of a measurement, which translates the sentences again until they are over."""
    repeats: int = Field(5, ge=1, le=LARGEST)
    """Measured rounds, after one that is not counted. In each round the models take turns."""
    losses: list[Annotated[float, Field(ge=0, le=100)]] = [0.2, 0.5, 1.0]
    """Losses of BLEU. For each the table has the run that saves most and loses no more."""
    threads: Threads = 1
    """CPU threads, in place of `resources.threads`. Every thread takes whole batches."""

    def _faults(self) -> Faults:
        largest, types = max(self.batch_sizes, default=0), self.compute_types
        yield f"compute_types: expected {FP32} among them", types and FP32 not in types
        yield "batch_sizes: expected at least one", not largest
        yield f"sentences: expected a whole batch, {largest}", self.sentences < largest
