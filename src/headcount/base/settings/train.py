"""Settings of training, and of pruning by Hard Concrete gates."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from headcount.base.settings.section import LARGEST, MOST_THREADS, PresetSection, Section


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

    clip_norm: float = Field(1.0, ge=0)
    """Largest norm of the gradient; a longer one is scaled down to it. 0: none is."""

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

    patience: int = Field(0, ge=0)
    """Training ends when dev loss has not fallen below its lowest for so many validations; 0: at
    the last of `updates`. An experiment with `pruned` has 0, for its models are compared after as
    many updates. With `cosine` the rate stays that of a training of all updates."""

    select: Literal["best", "last"] = "best"
    """Which weights become the model: those of the lowest dev loss, or of the last update."""

    keep_updates: list[Annotated[int, Field(ge=1)]] = []
    """Updates at which the weights are kept as well."""

    precision: Literal["fp32", "bf16", "auto"] = "fp32"
    """Number format of the matrix products; weights and optimiser stay in fp32. auto: bf16 where
    the processor multiplies it clearly faster and the model is wide enough to gain, else fp32.
    `precision` in model.json says which; an unfinished training goes on in it anywhere."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to train; auto takes a GPU where there is one."""

    threads: int = Field(1, ge=1, le=MOST_THREADS)
    """CPU threads of one training. Two trainings side by side on a thread each are faster than one
    after the other on two. Sums depend on it in their last bits."""

    processes: int = Field(1, ge=1, le=MOST_THREADS)
    """Processes that train one model together, each on its threads or its GPU. They share out the
    `accumulate` batches of an update, which stays the same but for the last bits of its sums."""

    @property
    def cores(self) -> int:
        """CPU cores that one training keeps busy."""
        return self.threads * self.processes

    @model_validator(mode="after")
    def _check_processes(self) -> "TrainSettings":
        if self.accumulate % self.processes:
            raise ValueError(
                f"accumulate {self.accumulate} cannot be shared out evenly among processes "
                f"{self.processes}; make it a multiple of them"
            )
        return self

    @model_validator(mode="after")
    def _check_lengths(self) -> "TrainSettings":
        if self.warmup_updates > self.updates:
            raise ValueError(
                f"warmup_updates {self.warmup_updates} is more than updates {self.updates}, so the "
                "learning rate would never reach peak_lr; lower warmup_updates"
            )
        if self.patience and self.keep_updates:
            raise ValueError(
                f"keep_updates names update {self.keep_updates[0]}, but with patience "
                f"{self.patience} training may end before it; set one of the two"
            )
        late = [update for update in self.keep_updates if update > self.updates]
        if late:
            raise ValueError(
                f"keep_updates names update {late[0]}, but training ends at update {self.updates}"
            )
        return self


_LENGTHS = ("updates", "peak_lr", "warmup_updates", "dev_interval")  # keys of both sections
_STEADY = {"patience": 0, "select": "last", "keep_updates": []}


class SubsetSettings(Section):
    """Pruning to exactly K heads by fine-tuning; K stands in the run's name, lengths in `gates`."""

    flag_prefix: ClassVar[str] = "subset-"

    temperature_start: float = Field(0.1, gt=0)
    """τ of the draws in the first update; larger draws multipliers further from 0 and 1."""

    temperature_end: float = Field(1e-8, gt=0)
    """τ to which it falls, geometrically, and then stays."""

    cooling: float = Field(0.25, gt=0, le=1)
    """Share of the updates in which it falls."""

    lr: float = Field(0.2, gt=0)
    """Learning rate of what ranks the heads, which has an Adam of its own; it is constant."""

    @model_validator(mode="after")
    def _check_cooling(self) -> "SubsetSettings":
        if self.temperature_end > self.temperature_start:
            raise ValueError(
                f"temperature_end {self.temperature_end:g} is above temperature_start "
                f"{self.temperature_start:g}; lower it"
            )
        return self


class GatesSettings(PresetSection):
    """Pruning by fine-tuning with a gate on every head; λ and scope stand in the run's name."""

    flag_prefix: ClassVar[str] = "gates-"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "default": {},
        # Voita et al.'s code, but for the updates: it trains until the gates have settled, and does
        # not say how long. `eval` and `lambda_reduction` stay: the paper's rule and formula.
        "paper": {
            "init": "glorot",
            "lr": 1.4e-3,
            "lr_schedule": "weights",
            "updates": 100000,
            "peak_lr": 1.4e-3,
            "warmup_updates": 16000,
        },
    }

    preset: Literal["default", "paper"] = "default"
    """Named values: `paper` has the start and the rates of Voita et al.'s released code (`init`,
    `lr`, `lr_schedule`, `peak_lr`, `warmup_updates`) and 100,000 `updates`. No other key changes:
    where that code has another `eval` and `lambda_reduction`, name these too, or divide its λ by
    the number of gated layers. A key that is named overrides."""

    temperature: float = Field(0.33, gt=0)
    """τ of the Concrete distribution; smaller draws gates nearer to 0 and 1."""

    stretch_low: float = Field(-0.1, lt=0)
    """γ, lower end of the stretched distribution; what lies below 0 becomes 0."""

    stretch_high: float = Field(1.1, gt=1)
    """ζ, upper end of the stretched distribution; what lies above 1 becomes 1."""

    init: float | Literal["glorot"] = 2.0
    """log α of every gate at the start, or `glorot`: uniform in ±√(6 / (2 · heads of the layer)),
    drawn by the run's seed."""

    eval: Literal["argmax01", "threshold", "louizos"] = "argmax01"
    """Gate at test time: the likelier of 0 and 1; 1 where the noiseless gate is above 0.5; or the
    noiseless gate itself, which may be a fraction."""

    lambda_reduction: Literal["sum", "mean_over_modules"] = "sum"
    """What λ multiplies: the expected number of open heads, then it is the price of one head in
    nats per target token; or that number divided by the number of gated layers."""

    lambda_warmup_updates: int = Field(0, ge=0)
    """λ grows linearly from 0 over this many updates."""

    lr: float = Field(0.1, gt=0)
    """Learning rate of log α, which has an Adam of its own."""

    lr_schedule: Literal["constant", "weights"] = "constant"
    """Keep that rate, or let it rise and fall in proportion to the rate of the weights."""

    updates: int = Field(6000, ge=1)
    """Updates of fine-tuning; also of the runs that gates are compared with. Gates from random
    weights have as many as a training and its fine-tuning; the three keys below are those of
    `train`, for them."""

    peak_lr: float = Field(3e-4, gt=0)
    """Learning rate of the weights at the end of the warm-up; the schedule is `train.schedule`."""

    warmup_updates: int = Field(100, ge=1)
    """Length of that warm-up (updates)."""

    dev_interval: int = Field(500, ge=1)
    """Updates between two validations, each of which records all gates."""

    @model_validator(mode="after")
    def _check_lengths(self) -> "GatesSettings":
        for name in ("warmup_updates", "lambda_warmup_updates"):
            if getattr(self, name) > self.updates:
                raise ValueError(
                    f"{name} {getattr(self, name)} is more than updates {self.updates}, so the "
                    f"warm-up would never end; lower {name}"
                )
        return self

    def fine_tuning(self, train: TrainSettings) -> TrainSettings:
        """The settings of training, with the length and rates of fine-tuning.

        The last weights become the model: when gates are still open the dev loss is lowest.
        """
        rates = {name: getattr(self, name) for name in _LENGTHS}
        return train.model_copy(update={**rates, **_STEADY})

    def from_scratch(self, train: TrainSettings) -> TrainSettings:
        """The settings of training, with as many updates as a training and its fine-tuning have.

        A model from scratch is compared with a pruned one, which had both.
        """
        return train.model_copy(update={"updates": train.updates + self.updates})

    def from_random_weights(self, train: TrainSettings) -> TrainSettings:
        """As `from_scratch`, for gates; as in `fine_tuning`, the last weights become the model."""
        return self.from_scratch(train).model_copy(update=_STEADY)
