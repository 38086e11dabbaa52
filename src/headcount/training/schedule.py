"""Adam, and its learning rate by update: linear warm-up, then one of two decays."""

import math

from headcount.base.settings.train import TrainSettings

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
