"""Adam, its learning rate by update, and averages of the weights over training."""

import math

import torch

from headcount.base.settings.train import TrainSettings
from headcount.training.states import Weights, grouped, joined

COSINE_FLOOR = 0.02
ADAM = {"betas": (0.9, 0.98), "eps": 1e-9}  # Vaswani et al. 2017, section 5.3


def learning_rate(settings: TrainSettings, update: int) -> float:
    """Return the learning rate of an update, from 1 (Vaswani et al. 2017, section 5.3)."""
    warmup = settings.warmup_updates
    if update <= warmup:
        return settings.peak_lr * update / warmup
    if settings.schedule == "inverse_sqrt":
        return settings.peak_lr * math.sqrt(warmup / update)
    done = (update - warmup) / max(settings.updates - warmup, 1)
    wave = (1 + math.cos(math.pi * min(done, 1.0))) / 2
    return settings.peak_lr * (COSINE_FLOOR + (1 - COSINE_FLOOR) * wave)


class Average:
    """Weights that are validated and saved, by `train.average`: as they are, or a mean.

    `ema` is their moving average with decay min(0.999, (1 + u) / (10 + u)) at update u, `last` the
    mean over the last five validations.
    """

    def __init__(self, kind: str, weights: Weights):
        self.kind = kind
        self.kept = [_copy(weights)] if kind == "ema" else []

    def after_update(self, weights: Weights, update: int) -> None:
        """Follow the weights, which an update, counted from 1, has changed."""
        for mean in self.kept if self.kind == "ema" else ():
            decay = min(0.999, (1 + update) / (10 + update))
            targets = [weights[name].detach() for name in mean]
            torch._foreach_lerp_(list(mean.values()), targets, 1 - decay)

    def at_validation(self, weights: Weights) -> Weights:
        """Return the weights to validate and save."""
        now = self.between(weights)
        if self.kind == "last":
            self.kept = self._last(weights)
        return now

    def between(self, weights: Weights) -> Weights:
        """Return the weights that a validation would give now, and change nothing."""
        if self.kind != "last":
            return self.kept[0] if self.kept else weights
        last = self._last(weights)
        return {name: sum(weight[name] for weight in last) / len(last) for name in weights}

    def state(self) -> Weights:
        """Return all that a resumed run needs."""
        return joined({str(place): weights for place, weights in enumerate(self.kept)})

    def restore(self, state: Weights) -> None:
        """Go on from a saved `state`."""
        by_place = grouped(state)
        self.kept = [by_place[place] for place in sorted(by_place)]

    def _last(self, weights: Weights) -> list[Weights]:
        return [*self.kept, _copy(weights)][-5:]


def _copy(weights: Weights) -> Weights:
    return {name: weight.detach().clone() for name, weight in weights.items()}
