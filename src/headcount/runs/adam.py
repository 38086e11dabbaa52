"""torch's Adam without its optimiser class, which loads torch's compiler: a second of every job."""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim.adam import adam

from headcount.base.settings.train import TrainSettings


class Adam:
    """Adam on a list of weights, to the last bit that of `torch.optim.Adam`.

    Source: Kingma & Ba 2015; no weight decay. `state` holds, by weight, the number of its updates
    as `step` and the moments `exp_avg` and `exp_avg_sq`, as in `torch.optim.Adam`.
    """

    def __init__(self, weights: Iterable[Tensor], settings: TrainSettings, fused: bool):
        """`fused`: all weights by one kernel, which rounds otherwise than one after the other."""
        self.settings = settings
        self.fused = fused
        self.state = {
            weight: {
                "step": torch.zeros((), device=weight.device),
                "exp_avg": torch.zeros_like(weight),
                "exp_avg_sq": torch.zeros_like(weight),
            }
            for weight in weights
        }

    def forget_gradients(self) -> None:
        """Leave every weight without a gradient."""
        for weight in self.state:
            weight.grad = None

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """One update of every weight that has a gradient."""
        weights = [weight for weight in self.state if weight.grad is not None]
        moments = ("exp_avg", "exp_avg_sq")
        averages, squares = ([self.state[weight][name] for weight in weights] for name in moments)
        adam(
            weights,
            [weight.grad for weight in weights],
            averages,
            squares,
            [],
            [self.state[weight]["step"] for weight in weights],
            fused=self.fused,
            foreach=False,
            amsgrad=False,
            beta1=self.settings.beta1,
            beta2=self.settings.beta2,
            lr=rate,
            weight_decay=0.0,
            eps=self.settings.epsilon,
            maximize=False,
        )
