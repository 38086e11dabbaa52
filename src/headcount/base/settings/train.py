"""Settings of training."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from headcount.base.settings.section import LARGEST, MOST_THREADS, Section


class TrainSettings(Section):
    """One training run, counted in updates so that its length does not depend on the machine."""

    updates: int = Field(30000, ge=1)
    """Number of optimiser updates."""

    batch_tokens: int = Field(4096, ge=1, le=LARGEST)
    """Budget of one batch: sentences × the longest sentence on either side (subwords)."""

    accumulate: int = Field(1, ge=1, le=LARGEST)
    """Batches per update; the loss is divided once by the real target tokens of them all."""

    schedule: Literal["inverse_sqrt", "cosine"] = "inverse_sqrt"
    """After a linear warm-up: decay with the square root of the update, or, for short runs, along
    a cosine to 2 % of the peak at the last update."""

    peak_lr: float = Field(7e-4, gt=0)
    """Learning rate at the end of the warm-up."""

    warmup_updates: int = Field(4000, ge=1)
    """Length of the warm-up (updates)."""

    beta1: float = Field(0.9, ge=0, lt=1)
    """Adam's decay of the first moment."""

    beta2: float = Field(0.98, ge=0, lt=1)
    """Adam's decay of the second moment."""

    epsilon: float = Field(1e-9, gt=0)
    """Adam's ε."""

    clip_norm: float = Field(1.0, gt=0)
    """Largest norm of the gradient; a longer one is scaled down to it."""

    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """Share of the probability spread evenly over the whole vocabulary."""

    average: Literal["none", "ema", "last"] = "ema"
    """Weights that are validated and kept: the trained ones, their exponential moving average, or
    the mean over the last validations."""

    ema_decay: float = Field(0.999, ge=0, lt=1)
    """Weight of the past in the moving average; smaller early in training."""

    average_last: int = Field(5, ge=1, le=1000)
    """Number of validations in the mean."""

    dev_interval: int = Field(500, ge=1)
    """Updates between two validations by dev loss."""

    select: Literal["best", "last"] = "best"
    """Which weights become the model: those of the lowest dev loss, or of the last update."""

    keep_updates: list[Annotated[int, Field(ge=1)]] = Field(default_factory=list)
    """Updates at which the weights are kept as well."""

    precision: Literal["fp32", "bf16"] = "fp32"
    """Number format of the matrix products; weights and optimiser stay in fp32."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to train; auto takes a GPU where there is one."""

    threads: int = Field(1, ge=1, le=MOST_THREADS)
    """CPU threads of one training. Two trainings side by side on a thread each are faster than one
    after the other on two. Sums depend on it in their last bits."""

    @model_validator(mode="after")
    def _check_lengths(self) -> "TrainSettings":
        if self.warmup_updates > self.updates:
            raise ValueError(
                f"warmup_updates {self.warmup_updates} is more than updates {self.updates}, so the "
                "learning rate would never reach peak_lr; lower warmup_updates"
            )
        late = [update for update in self.keep_updates if update > self.updates]
        if late:
            raise ValueError(
                f"keep_updates names update {late[0]}, but training ends at update {self.updates}"
            )
        return self
