"""Settings of training, and of pruning by Hard Concrete gates and by subsets."""

from typing import ClassVar, Literal

from pydantic import Field

from headcount.base.settings.section import LARGEST, Faults, Numbers, Resources, Section, Threads


class TrainSettings(Resources):
    """One training run, counted in updates so that its length does not depend on the machine."""

    batch_tokens: int = Field(4096, ge=1, le=LARGEST)
    """Budget of one batch: sentences × the longest sentence on either side (subwords)."""
    updates: int = Field(30000, ge=1)
    """Number of optimiser updates."""
    accumulate: int = Field(1, ge=1, le=LARGEST)
    """Batches per update; the loss is divided once by the real target tokens of them all."""
    schedule: Literal["inverse_sqrt", "cosine"] = "inverse_sqrt"
    """Decay after the linear warm-up: by 1 / √update, or along a cosine to 2 % of the peak."""
    peak_lr: float = Field(7e-4, gt=0)
    """Learning rate at the end of the warm-up."""
    warmup_updates: int = Field(4000, ge=1)
    """Length of the warm-up (updates)."""
    clip_norm: float = Field(1.0, ge=0)
    """Largest norm of the gradient; a longer one is scaled down to it. 0: no limit."""
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """Share of the probability spread evenly over the whole vocabulary."""
    average: Literal["none", "ema", "last"] = "ema"
    """Weights that are validated and saved: the trained ones, their exponential moving average
    (0.999), or the mean over the last five validations."""
    dev_interval: int = Field(500, ge=1)
    """Updates between two validations by dev loss."""
    patience: int = Field(0, ge=0)
    """Training ends when dev loss has not fallen below its lowest for so many validations; 0: after
    `updates`, as `pruned` needs. The learning rate is that of all updates."""
    select: Literal["best", "last"] = "best"
    """Which weights become the model: those of the lowest dev loss, or of the last update."""
    keep_updates: Numbers = []
    """Updates after which the weights are saved as well."""
    processes: Threads = 1
    """Processes that share the `accumulate` batches of an update, each on its threads or GPU."""

    @property
    def cores(self) -> int:
        """CPU cores that one training keeps busy."""
        return self.threads * self.processes

    def _faults(self) -> Faults:
        yield "accumulate: expected a multiple of processes", self.accumulate % self.processes
        yield f"warmup_updates: at most {self.updates}", self.warmup_updates > self.updates
        yield f"keep_updates: at most {self.updates}", self.keep_updates[-1:] > [self.updates]
        yield "keep_updates: not beside patience", self.patience and self.keep_updates


_LENGTHS = ("updates", "peak_lr", "warmup_updates", "dev_interval")  # keys of both sections
_STEADY = {"patience": 0, "select": "last", "keep_updates": []}


class SubsetSettings(Section):
    """Pruning to exactly K heads by fine-tuning; K stands in the run, lengths in `gates`."""

    flag_prefix: ClassVar[str] = "subset-"

    temperature_start: float = Field(0.1, ge=1e-8)
    """τ of the draws in the first update; larger draws multipliers further from 0 and 1."""
    lr: float = Field(0.2, gt=0)
    """Constant learning rate of the numbers that rank the heads, which have their own Adam."""


class GatesSettings(Section):
    """Pruning by fine-tuning with a gate on every head; λ and scope stand in the run."""

    flag_prefix: ClassVar[str] = "gates-"

    temperature: float = Field(0.33, gt=0)
    """τ of the Concrete distribution; smaller draws gates nearer to 0 and 1."""
    init: float | Literal["glorot"] = 2.0
    """log α of every gate at the start, or `glorot`: uniform in ±√(3 / heads of the layer)."""
    lr: float = Field(0.1, gt=0)
    """Learning rate of log α, which has its own Adam."""
    lr_schedule: Literal["constant", "weights"] = "constant"
    """Keep that rate, or let it rise and fall in proportion to the rate of the weights."""
    updates: int = Field(6000, ge=1)
    """Updates of fine-tuning, for all pruned runs. Gates from random weights have these after
    `train.updates`, and the three keys below from `train`."""
    peak_lr: float = Field(3e-4, gt=0)
    """Learning rate of the weights at the end of the warm-up; the schedule is `train.schedule`."""
    warmup_updates: int = Field(100, ge=1)
    """Length of that warm-up (updates)."""
    dev_interval: int = Field(500, ge=1)
    """Updates between two validations, each of which records all gates."""

    def _faults(self) -> Faults:
        yield f"warmup_updates: at most {self.updates}", self.warmup_updates > self.updates

    def fine_tuning(self, train: TrainSettings) -> TrainSettings:
        """Return the settings of fine-tuning, whose last weights become the model."""
        rates = {name: getattr(self, name) for name in _LENGTHS}
        return train.model_copy(update={**rates, **_STEADY})

    def from_scratch(self, train: TrainSettings) -> TrainSettings:
        """Return the settings of training, with the updates of a training and its fine-tuning."""
        return train.model_copy(update={"updates": train.updates + self.updates})

    def from_random_weights(self, train: TrainSettings) -> TrainSettings:
        """Return the settings for gates from scratch, whose last weights become the model."""
        return self.from_scratch(train).model_copy(update=_STEADY)
