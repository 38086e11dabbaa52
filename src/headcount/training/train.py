"""The training loop: exact to the last bit wherever it is stopped and resumed on a CPU.

On a GPU torch's fused attention adds the gradients of long sentences in an order of its own.
"""

import copy
import math
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict

import torch
from torch import Tensor
from tqdm import tqdm

from headcount.base.errors import EnvironmentFault, Interrupted, UserError
from headcount.base.random_streams import Stream
from headcount.base.settings.train import TrainSettings
from headcount.data.batches import Batch, BatchPlan, ParallelText
from headcount.model.loss import summed_loss
from headcount.model.machine import batches_of, number_format
from headcount.model.transformer import Transformer, copy_weights, first_device
from headcount.training.headmask import HeadMask
from headcount.training.optimiser import ADAM, Average, learning_rate
from headcount.training.processes import add_up, agree, is_first, own_share
from headcount.training.progress import Progress, caught_signals
from headcount.training.score import mean_loss
from headcount.training.states import State, StateStore, Weights, grouped, joined


class Trainer:
    """One training run. Data order, dropout and random masks follow the seed independently.

    Weights without a gradient are frozen: they stay as they are, to the last bit.
    """

    def __init__(
        self,
        model: Transformer,
        train: ParallelText,
        dev: ParallelText,
        settings: TrainSettings,
        seed: int,
        states: StateStore,
        head_mask: HeadMask | None = None,
    ):
        """`head_mask` chooses the masked heads of each update. None masks no head."""
        if not len(dev):
            raise UserError("the dev set has no sentence pair; training validates on it")
        self.model = model.train()
        self.averaged = copy.deepcopy(model)
        self.dev = dev
        self.settings = settings
        self.seed = seed
        self.states = states
        self.device = first_device(model)
        self.plan = BatchPlan(train, settings.batch_tokens, seed)
        self.text = train
        self.weights: Weights = {n: w for n, w in model.named_parameters() if w.requires_grad}
        self.optimiser = torch.optim.Adam(self.weights.values(), fused=True, **ADAM)
        self.average = Average(settings.average, self.weights)
        self.head_mask = head_mask or HeadMask()
        self.best: Weights = {}
        self.progress = Progress()
        self._batches = self._stream()

    def fit(self) -> None:
        """Train to the last update, from the newest saved state if there is one.

        With `patience` training may end earlier. Raises Interrupted on SIGTERM or SIGINT, with the
        state saved, and UserError at a loss or gradient that is not finite. Of several processes
        only the first returns.
        """
        with batches_of("train", self.settings.batch_tokens):
            self._resume()
            progress, settings = self.progress, self.settings
            silent = None if is_first() else True  # None: as the terminal says
            bar = tqdm(total=settings.updates, initial=progress.update, disable=silent)
            with bar, caught_signals() as caught:
                finished = self._has_ended()
                while not finished:
                    self._update()
                    bar.update()
                    update = progress.update
                    if update == settings.updates or update % settings.dev_interval == 0:
                        self._validate()
                        progress.print_validation(settings.updates)
                        finished = self._has_ended()
                    stopped = agree(bool(caught))
                    if is_first() and (finished or stopped or self.states.due()):
                        self.states.save(update, self.snapshot())
                    if stopped and not finished:
                        raise Interrupted(caught[0] if caught else signal.SIGTERM)
        if not is_first():
            sys.exit(0)

    def chosen(self) -> Weights:
        """Return the weights that become the model: the best by dev loss, or the last."""
        return self.best if self.settings.select == "best" else self.last()

    def chosen_row(self) -> dict[str, float | None]:
        """Return the row of the curve at which these weights were validated."""
        progress = self.progress
        return progress.best() if self.settings.select == "best" else progress.curve[-1]

    def steps(self) -> list[int]:
        """Return the updates after which the model was validated."""
        return [row["step"] for row in self.progress.curve]

    def last(self) -> Weights:
        """Return the averaged weights at the last validation, frozen ones included."""
        return dict(self.averaged.named_parameters())

    def snapshot(self) -> State:
        """Return everything that the rest of the run depends on."""
        groups: dict[str, Weights] = {
            "model": self.weights,
            "average": self.average.state(),
            "head_mask": self.head_mask.state(),
            "averaged": self.last(),
            "best": self.best,
        }
        for moment in ("exp_avg", "exp_avg_sq"):
            groups[moment] = {n: self.optimiser.state[w][moment] for n, w in self.weights.items()}
        facts = {"progress": asdict(self.progress), "precision": self.settings.precision}
        return State(joined(groups), facts)

    def restore(self, state: State) -> None:
        """Go on from a `snapshot`."""
        self.progress = Progress(**state.facts["progress"])
        groups = grouped(state.tensors)
        step = torch.tensor(float(self.progress.update), device=self.device)
        copy_weights(self.model, groups["model"])
        copy_weights(self.averaged, groups["averaged"])
        for name, weight in self.weights.items():
            moments = {m: groups[m][name].to(self.device) for m in ("exp_avg", "exp_avg_sq")}
            self.optimiser.state[weight] = {"step": step.clone(), **moments}
        self.average.restore({n: t.to(self.device) for n, t in groups.get("average", {}).items()})
        self.head_mask.restore(groups.get("head_mask", {}))
        self.best = {n: t.to(self.device) for n, t in groups.get("best", {}).items()}
        self._batches = self._stream()

    def _resume(self) -> None:
        """Go on from the newest saved state, if there is one and all processes see it."""
        if state := self.states.load():
            self.restore(state)
        first = torch.tensor([self.progress.update if is_first() else 0])
        add_up([first])
        if self.progress.update != first:
            raise EnvironmentFault(
                f"{self.states.folder}: expected the state of update {int(first)}, as in the first "
                f"process, found update {self.progress.update}; all processes must see the same "
                "files"
            )
        if state and is_first():
            print(f"going on from update {self.progress.update}", file=sys.stderr, flush=True)
        elif is_first() and (refused := self.states.refused()):
            print(f"starting from zero: {refused}", file=sys.stderr, flush=True)

    def _update(self) -> None:
        """Make one update on `accumulate` batches, the loss divided once by their target tokens."""
        start = time.monotonic()
        batches = [next(self._batches) for _ in range(self.settings.accumulate)]
        target_tokens = sum(batch.target_tokens for batch in batches)
        multiplier = self._choose_heads(batches, target_tokens)
        self.optimiser.zero_grad(set_to_none=True)
        losses = torch.zeros(len(batches), dtype=torch.float64, device=self.device)
        parts = [multiplier] * len(batches)
        if multiplier is not None and multiplier.ndim == 2:  # a row for every sentence
            parts = multiplier.split([len(batch.indices) for batch in batches])
        for place, batch in own_share(batches):
            torch.manual_seed(Stream.DROPOUT.number(self.seed, self.progress.update, place))
            with number_format(self.settings.precision, self.device):
                loss = summed_loss(self.model, batch, parts[place], self.settings.label_smoothing)
            (loss / target_tokens).backward()
            losses[place] = loss.detach()
        agree(False)  # fails at once if another process has ended, for which NCCL would wait
        slopes = [multiplier.grad] if multiplier is not None and multiplier.requires_grad else []
        add_up([losses, *slopes, *(weight.grad for weight in self.weights.values())])
        loss, slope = self._step(losses, batches, slopes)
        if slopes:
            self.head_mask.learn(torch.tensor(slope))
        tokens = target_tokens + sum(sum(batch.src_lengths) for batch in batches)
        self.progress.add_update(loss, target_tokens, tokens, time.monotonic() - start)
        if is_first() and self.progress.update in self.settings.keep_updates:
            now = dict(self.model.named_parameters()) | self.average.between(self.weights)
            self.states.save_checkpoint(self.progress.update, now)

    def _step(
        self, losses: Tensor, batches: list[Batch], slopes: list[Tensor]
    ) -> tuple[float, list[float]]:
        """Change the weights by their gradients. Return the summed loss, and the slopes as numbers.

        All passes of the update are queued by then, so that it waits for a GPU only once. Impt-N
        waits for its first pass, too.
        """
        update = self.progress.update + 1
        longest = self.settings.clip_norm or math.inf
        norm = torch.nn.utils.clip_grad_norm_(self.weights.values(), longest)
        read = torch.cat([losses, norm.double()[None], *slopes]).tolist()
        values, (whole, *slope) = read[: len(batches)], read[len(batches) :]
        for value, batch in zip(values, batches, strict=True):
            self._require_finite("loss", value, [batch])
        self._require_finite("gradient norm", whole, batches)
        self.optimiser.param_groups[0]["lr"] = learning_rate(self.settings, update)
        self.optimiser.step()
        self.average.after_update(self.weights, update)
        return sum(values), slope

    def _choose_heads(self, batches: list[Batch], target_tokens: int) -> Tensor | None:
        """Return the multiplier of the current update, see `Choice`. None masks no head."""
        choice = self.head_mask.choose(self.model, batches, self.progress.update + 1)
        if choice.first_pass:
            self._require_finite("loss of the first pass", choice.first_pass.loss, batches)
        self.progress.add_choice(choice, target_tokens)
        if choice.multiplier is None:
            return None
        there = choice.multiplier.detach().to(self.device, non_blocking=True)
        return there.requires_grad_(choice.multiplier.requires_grad)

    def _has_ended(self) -> bool:
        """Return True after the last update, or when `patience` is at its end."""
        # The first process decides: another one's dev loss may differ in its last bits.
        best = self.progress.best()
        waited = sum(row["step"] > best["step"] for row in self.progress.curve)
        impatient = bool(self.settings.patience) and waited >= self.settings.patience
        return agree(is_first() and (impatient or self.progress.update == self.settings.updates))

    def _validate(self) -> None:
        start, progress = time.monotonic(), self.progress
        with torch.no_grad():
            copy_weights(self.averaged, self.average.at_validation(self.weights))
        budget, multiplier = 4 * self.settings.batch_tokens, self.head_mask.at_validation()
        loss = mean_loss(self.averaged, self.dev, budget, multiplier)
        self._require_finite("dev loss", loss, [])
        best = progress.best()
        if best is None or loss < best["dev_loss"]:
            self.best = {name: weight.detach().clone() for name, weight in self.last().items()}
        rate = learning_rate(self.settings, progress.update)
        progress.add_validation(loss, rate, time.monotonic() - start)

    def _stream(self) -> Iterator[Batch]:
        """Yield batches from the current position on, epoch after epoch, and count them."""
        while True:
            for indices in self.plan.epoch(self.progress.epoch)[self.progress.position :]:
                self.progress.position += 1
                yield self.text.batch(indices, self.device)
            self.progress.epoch += 1
            self.progress.position = 0

    def _require_finite(self, name: str, value: float, batches: list[Batch]) -> None:
        """Raise UserError, with the pairs of these batches, for a number that is not finite."""
        if not math.isfinite(value):
            pairs = [i + 1 for batch in batches for i in batch.indices]
            text = f"lines {pairs} of the BPE step's train.src and train.tgt"
            raise UserError(
                f"update {self.progress.update + bool(pairs)}: the {name} is {value}, expected a "
                "finite number. Lower train.peak_lr, lengthen train.warmup_updates, or look at "
                f"{text if pairs else 'the dev set'}"
            )
