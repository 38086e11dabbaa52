"""Progress of a training run: its counters and curve, the progress bar, and stop signals."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from tqdm import tqdm

from headcount.training.headmask import Choice
from headcount.training.processes import is_first

CURVE_COLUMNS = (
    *("step", "epoch", "train_loss", "dev_loss", "lr", "tokens_per_s", "seconds"),
    "first_pass_loss",  # per target token, like train_loss, but of all heads and without dropout
)


@dataclass
class Progress:
    """All counters of a run. `since` = since the last validation. Losses are in nats."""

    update: int = 0
    epoch: int = 0
    position: int = 0  # batches of this epoch already used
    loss_since: float = 0.0
    target_tokens_since: int = 0
    tokens_since: int = 0  # source and target
    seconds_since: float = 0.0  # in updates only
    seconds: float = 0.0  # in updates and validations, not in saving; over all sessions
    first_pass_loss_since: float = 0.0
    first_pass_tokens_since: int = 0  # target tokens that passed twice
    first_pass_sentences_since: int = 0
    # Over these sentences, each [heads]: sums of importance, of ∂L/∂ξ and of its square.
    slopes_since: list[list[float]] = field(default_factory=list)
    masked_since: list[float] = field(default_factory=list)  # per head: updates that masked it
    curve: list[dict[str, float | None]] = field(default_factory=list)
    # At each row of the curve, for each head: share of the updates that masked it; mean and
    # deviation of ∂L/∂ξ, and mean importance. Empty where nothing was masked or measured.
    masks: list[list[list[float]]] = field(default_factory=list)
    slopes: list[list[list[float]]] = field(default_factory=list)

    def add_choice(self, choice: Choice, target_tokens: int) -> None:
        """Count the heads that the current update masks, and what its first pass measured."""
        masked, first_pass = choice.masked, choice.first_pass
        before = self.masked_since or [0] * len(masked)
        self.masked_since = [count + now for count, now in zip(before, masked, strict=True)]
        if not first_pass:
            return
        self.first_pass_tokens_since += target_tokens
        self.first_pass_loss_since += first_pass.loss
        self.first_pass_sentences_since += first_pass.sentences
        importance = first_pass.sentences * first_pass.importance
        sums = torch.stack([importance, first_pass.slopes, first_pass.squares])
        if self.slopes_since:
            sums += torch.tensor(self.slopes_since, dtype=torch.float64)
        self.slopes_since = sums.tolist()

    def add_update(self, loss: float, target_tokens: int, tokens: int, seconds: float) -> None:
        """Count one update. `loss` is the sum over its target tokens."""
        self.update += 1
        self.loss_since += loss
        self.target_tokens_since += target_tokens
        self.tokens_since += tokens
        self.seconds_since += seconds
        self.seconds += seconds

    def add_validation(self, dev_loss: float, lr: float, seconds: float) -> None:
        """Add a row to the curve and start counting anew."""
        self.seconds += seconds
        passed = self.first_pass_tokens_since
        row = (
            self.update,
            self.epoch,
            self.loss_since / self.target_tokens_since,
            dev_loss,
            lr,
            round(self.tokens_since / self.seconds_since, 1),
            round(self.seconds, 2),
            self.first_pass_loss_since / passed if passed else None,
        )
        interval = self.update - (self.curve[-1]["step"] if self.curve else 0)
        self.masks.append([[count / interval] for count in self.masked_since])
        self.slopes.append(self._slopes())
        self.curve.append(dict(zip(CURVE_COLUMNS, row, strict=True)))
        self.masked_since, self.slopes_since, self.first_pass_sentences_since = [], [], 0
        self.loss_since = self.seconds_since = self.first_pass_loss_since = 0.0
        self.target_tokens_since = self.tokens_since = self.first_pass_tokens_since = 0

    def _slopes(self) -> list[list[float]]:
        """Return mean and deviation of ∂L/∂ξ, and mean importance, of each head."""
        if not self.slopes_since:
            return []
        sums = torch.tensor(self.slopes_since, dtype=torch.float64)
        importance, mean, square = sums / self.first_pass_sentences_since
        deviation = (square - mean.square()).clamp(min=0).sqrt()
        return torch.stack([mean, deviation, importance], dim=1).tolist()

    def best(self) -> dict[str, float | None] | None:
        """Return the first row of the curve with the lowest dev loss, None before any."""
        return min(self.curve, key=lambda row: row["dev_loss"], default=None)

    def print_validation(self, updates: int) -> None:
        """Print the newest row of the curve and the time left, in the first process."""
        if is_first():
            row = self.curve[-1]
            left = (updates - row["step"]) * row["seconds"] / row["step"]
            tqdm.write(
                f"update {row['step']}/{updates}  epoch {row['epoch']}  "
                f"train {row['train_loss']:.4f}  dev {row['dev_loss']:.4f}  "
                f"{row['tokens_per_s']:,.0f} tokens/s  {left / 60:.1f} min left",
                file=sys.stderr,
            )
            sys.stderr.flush()


@contextmanager
def caught_signals() -> Iterator[list[int]]:
    """Collect SIGTERM and SIGINT instead of dying of them. After either, SIGINT kills as usual.

    SIGTERM does not, in this context or after it: SLURM sends it twice within 50 ms at a time
    limit, and after the first the command ends by itself.
    """
    caught: list[int] = []

    def catch(number: int, _: object) -> None:
        caught.append(number)
        signal.signal(signal.SIGINT, before[signal.SIGINT])

    before = {name: signal.signal(name, catch) for name in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield caught
    finally:
        for name, handler in before.items():
            if name not in caught or name != signal.SIGTERM:
                signal.signal(name, handler)
