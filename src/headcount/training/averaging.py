"""Averages of the weights over training. Each gives the weights that are validated and kept."""

import torch

from headcount.base.settings.train import TrainSettings
from headcount.training.states import Weights, grouped, joined

EMA_DECAY = 0.999
LAST = 5  # validations in a mean


class Average:
    """What training asks of an average, with the answers of one that averages nothing."""

    def after_update(self, weights: Weights, update: int) -> None:
        """Follow the weights, which an update, counted from 1, has changed."""

    def at_validation(self, weights: Weights) -> Weights:
        """The weights to validate and keep; here the trained ones."""
        return weights

    def between(self, weights: Weights) -> Weights:
        """What a validation would give now; it changes nothing."""
        return self.at_validation(weights)

    def state(self) -> Weights:
        """All that a resumed run needs."""
        return {}

    def restore(self, state: Weights) -> None:
        """Take over the average of which `state` told."""


class MovingAverage(Average):
    """Exponential moving average with decay min(d, (1 + u) / (10 + u)) at update u."""

    def __init__(self, weights: Weights, decay: float):
        self.decay = decay
        self.mean = {name: weight.detach().clone() for name, weight in weights.items()}

    def after_update(self, weights: Weights, update: int) -> None:
        """Move towards the weights; early on faster, so that the start is soon forgotten."""
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
        """Take the weights in and return the mean of those held."""
        self.last = self._with(weights)
        return _mean(self.last)

    def between(self, weights: Weights) -> Weights:
        return _mean(self._with(weights))

    def state(self) -> Weights:
        """The weights held, each under its place in line."""
        return joined({str(place): weights for place, weights in enumerate(self.last)})

    def restore(self, state: Weights) -> None:
        held = grouped(state)
        self.last = [held[place] for place in sorted(held, key=int)]

    def _with(self, weights: Weights) -> list[Weights]:
        copy = {name: weight.detach().clone() for name, weight in weights.items()}
        return [*self.last, copy][-self.count :]


def _mean(held: list[Weights]) -> Weights:
    return {name: sum(weights[name] for weights in held) / len(held) for name in held[0]}


def make_average(settings: TrainSettings, weights: Weights) -> Average:
    """The average that the settings name."""
    if settings.average == "ema":
        return MovingAverage(weights, EMA_DECAY)
    return LastAverage(LAST) if settings.average == "last" else Average()
