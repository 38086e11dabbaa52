"""Averages of the weights over training. Each gives the weights that are validated and kept."""

from typing import Protocol

import torch
from torch import Tensor

from headcount.base.settings.train import TrainSettings

Weights = dict[str, Tensor]


class Average(Protocol):
    """What training asks of an average; `state` is all that a resumed run needs."""

    def after_update(self, weights: Weights, update: int) -> None: ...

    def at_validation(self, weights: Weights) -> Weights: ...

    def between(self, weights: Weights) -> Weights: ...

    def state(self) -> Weights: ...

    def restore(self, state: Weights) -> None: ...


class NoAverage:
    """The trained weights themselves."""

    def after_update(self, weights: Weights, update: int) -> None:
        """Nothing to follow."""

    def at_validation(self, weights: Weights) -> Weights:
        """The weights as they are."""
        return weights

    def between(self, weights: Weights) -> Weights:
        """The weights as they are."""
        return weights

    def state(self) -> Weights:
        """Nothing to save."""
        return {}

    def restore(self, state: Weights) -> None:
        """Nothing to restore."""


class MovingAverage:
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
        """The moving average."""
        return self.mean

    def between(self, weights: Weights) -> Weights:
        """The moving average."""
        return self.mean

    def state(self) -> Weights:
        """The moving average."""
        return self.mean

    def restore(self, state: Weights) -> None:
        """Take over a saved moving average."""
        for name, value in state.items():
            self.mean[name].copy_(value)


class LastAverage:
    """Mean of the weights at the last `count` validations."""

    def __init__(self, count: int):
        self.count = count
        self.last: list[Weights] = []

    def after_update(self, weights: Weights, update: int) -> None:
        """Nothing to follow between validations."""

    def at_validation(self, weights: Weights) -> Weights:
        """Take the weights in and return the mean of those held."""
        self.last = self._with(weights)
        return _mean(self.last)

    def between(self, weights: Weights) -> Weights:
        """What a validation would give now; the weights are not taken in."""
        return _mean(self._with(weights))

    def state(self) -> Weights:
        """The weights held, each under its place in line."""
        held = enumerate(self.last)
        return {f"{place}/{name}": weight for place, one in held for name, weight in one.items()}

    def restore(self, state: Weights) -> None:
        """Take over the weights saved by `state`."""
        places = sorted({int(key.split("/")[0]) for key in state})
        self.last = [
            {key.split("/", 1)[1]: w for key, w in state.items() if int(key.split("/")[0]) == place}
            for place in places
        ]

    def _with(self, weights: Weights) -> list[Weights]:
        copy = {name: weight.detach().clone() for name, weight in weights.items()}
        return [*self.last, copy][-self.count :]


def _mean(held: list[Weights]) -> Weights:
    return {name: sum(weights[name] for weights in held) / len(held) for name in held[0]}


def make_average(settings: TrainSettings, weights: Weights) -> Average:
    """The average that the settings name."""
    if settings.average == "ema":
        return MovingAverage(weights, settings.ema_decay)
    return LastAverage(settings.average_last) if settings.average == "last" else NoAverage()
