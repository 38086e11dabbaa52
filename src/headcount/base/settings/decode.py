"""Settings of decoding, and of timing it."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from headcount.base.settings.section import LARGEST, MOST_THREADS, Section, each_once

BatchSize = Annotated[int, Field(ge=1, le=LARGEST)]
BatchSizes = Annotated[list[BatchSize], AfterValidator(each_once)]


class DecodeSettings(Section):
    """Beam search of our own."""

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


class TranslateSettings(DecodeSettings):
    """Beam search."""

    engine: Literal["headcount", "ctranslate2", "ctranslate2-int8"] = "headcount"
    """Whose program translates the test sets, and texts by hand: ours, or CTranslate2 on the CPU,
    in fp32 or int8; the guide on export says what differs. Ablation, masking, pruning profiles and
    timings are by ours whatever this says: they silence heads sentence by sentence."""

    @model_validator(mode="after")
    def _has_a_device_for_its_engine(self) -> "TranslateSettings":
        if self.engine != "headcount" and self.device == "cuda":
            raise ValueError(
                f"decode.device: expected auto or cpu with decode.engine {self.engine}, which "
                "translates on the CPU, found cuda"
            )
        return self


class GenerateSettings(Section):
    """Beam search of Hugging Face's library, for models that stay there. Nothing is sampled, nor
    ended early; what else is not here is as the model's folder says."""

    beam: int = Field(4, ge=1, le=1000)
    """Hypotheses kept per sentence; 1 is greedy search."""

    length_penalty: float = Field(0, ge=0)
    """α in score = log-probability / length^α, the library's formula; 0 compares plain
    log-probabilities. At other values the library guesses when nothing can win any more."""

    max_new_tokens: int = Field(200, ge=1, le=LARGEST)
    """Longest output (subwords)."""

    batch_tokens: int = Field(1024, ge=1, le=LARGEST)
    """Budget of one batch: sentences × the longest source sentence (subwords)."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to decode; auto takes a GPU where there is one."""

    threads: int = Field(1, ge=1, le=MOST_THREADS)
    """CPU threads of one job."""


class SpeedSettings(Section):
    """Timing pruned models beside the baseline, but for controls and those from scratch."""

    flag_prefix: ClassVar[str] = "speed-"

    sentences: int = Field(128, ge=1)
    """Sentences that one measurement encodes, or translates: the first ones of the dev set."""

    batch_sizes: BatchSizes = []
    """Sentences at once, as in `[1, 16, 64]`; every size is measured. Empty: nothing is timed, and
    there are no tables of speed. Timing may take half of an experiment's minutes."""

    repeats: int = Field(5, ge=1, le=LARGEST)
    """Measured rounds; in each the models take turns. One more before them is not counted."""

    threads: int = Field(1, ge=1, le=MOST_THREADS)
    """CPU threads of the model that is timed; nothing else runs beside it."""

    @model_validator(mode="after")
    def _batches_can_be_full(self) -> "SpeedSettings":
        largest = max(self.batch_sizes, default=0)
        if self.sentences < largest:
            raise ValueError(
                f"speed.sentences: expected at least {largest}, the largest of "
                f"speed.batch_sizes, found {self.sentences}"
            )
        return self
