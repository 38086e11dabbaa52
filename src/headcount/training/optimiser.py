"""Adam, its learning rate by update, and averages of the weights over training."""

import math

import torch

from headcount.base.settings.train import TrainSettings
from headcount.training.states import Weights, grouped, joined

COSINE_FLOOR = 0.02
ADAM = {"betas": (0.9, 0.98), "eps": 1e-9}  # Vaswani et al. 2017, section 5.3


def learning_rate(settings: TrainSettings, update: int) -> float:
    """Return the learning rate of an update, counted from 1. Its largest value is `peak_lr`.

    `inverse_sqrt` is Vaswani et al. 2017, section 5.3, written with its peak: their formula is
    peak_lr = (d_model · warmup_updates)^-0.5.
    """
    warmup = settings.warmup_updates
    if update <= warmup:
        return settings.peak_lr * update / warmup
    if settings.schedule == "inverse_sqrt":
        return settings.peak_lr * math.sqrt(warmup / update)
    done = (update - warmup) / max(settings.updates - warmup, 1)
    wave = (1 + math.cos(math.pi * min(done, 1.0))) / 2
    return settings.peak_lr * (COSINE_FLOOR + (1 - COSINE_FLOOR) * wave)


class Average:
    """Base class of averages. This one averages nothing."""

    def after_update(self, weights: Weights, update: int) -> None:
        """Follow the weights, which an update, counted from 1, has changed."""

    def at_validation(self, weights: Weights) -> Weights:
        """Return the weights to validate and save."""
        return weights

    def between(self, weights: Weights) -> Weights:
        """Return the weights that a validation would give now, and change nothing."""
        return self.at_validation(weights)

    def state(self) -> Weights:
        """Return all that a resumed run needs."""
        return {}

    def restore(self, state: Weights) -> None:
        """Go on from a saved `state`."""


class MovingAverage(Average):
    """Exponential moving average with decay min(d, (1 + u) / (10 + u)) at update u."""

    def __init__(self, weights: Weights, decay: float):
        self.decay = decay
        self.mean = {name: weight.detach().clone() for name, weight in weights.items()}

    def after_update(self, weights: Weights, update: int) -> None:
        decay = min(self.decay, (1 + update) / (10 + update))
        targets = [weights[name].detach() for name in self.mean]
        torch._foreach_lerp_(list(self.mean.values()), targets, 1 - decay)

    def at_validation(self, weights: Weights) -> Weights:
        return self.mean

    def state(self) -> Weights:
        return self.mean

    def restore(self, state: Weights) -> None:
        for name, value in state.items():
            self.mean[name].copy_(value)


class LastAverage(Average):
    """Mean of the weights at the last `count` validations."""

    def __init__(self, count: int):
        self.count = count
        self.last: list[Weights] = []

    def at_validation(self, weights: Weights) -> Weights:
        self.last = self._with(weights)
        return _mean(self.last)

    def between(self, weights: Weights) -> Weights:
        return _mean(self._with(weights))

    def state(self) -> Weights:
        return joined({str(place): weights for place, weights in enumerate(self.last)})

    def restore(self, state: Weights) -> None:
        by_place = grouped(state)
        self.last = [by_place[place] for place in sorted(by_place, key=int)]

    def _with(self, weights: Weights) -> list[Weights]:
        copy = {name: weight.detach().clone() for name, weight in weights.items()}
        return [*self.last, copy][-self.count :]


def _mean(several: list[Weights]) -> Weights:
    return {name: sum(weights[name] for weights in several) / len(several) for name in several[0]}


def make_average(settings: TrainSettings, weights: Weights) -> Average:
    """Return the average that the settings name."""
    if settings.average == "ema":
        return MovingAverage(weights, 0.999)
    return LastAverage(5) if settings.average == "last" else Average()
