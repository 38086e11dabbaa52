"""What captions say of pruned models: the price, the fine-tuning, the models at the start."""

import pandas as pd

from headcount.base.settings.gates import GatesSettings
from headcount.base.settings.model import ModelSettings
from headcount.findings.run_tables import KEYS
from headcount.findings.setting import describe_setting
from headcount.findings.voita.pruning.heads import PrunedModel

_RULES = {
    "argmax01": "a head is kept at test time where P(1) > P(0)",
    "threshold": "a head is kept at test time where the noiseless gate is above 0.5",
    "louizos": "at test time a head has its noiseless gate, and is kept where that is above 0",
}
_PRICED = {
    "sum": "price of one head in nats per target token",
    "mean_over_modules": "weight of the mean over gated layers of their expected open heads",
}


def describe_pruning(model: ModelSettings, gates: GatesSettings, pruned: list[PrunedModel]) -> str:
    """What λ is, how models were fine-tuned, and `describe_setting` of the models at the start."""
    begin = "drawn evenly around 0" if gates.init == "glorot" else f"{gates.init:g}"
    starts = pd.DataFrame([found.start for found in pruned], columns=KEYS)
    return (
        f"λ: {_PRICED[gates.lambda_reduction]}. Fine-tuning: {gates.updates} updates; gates with "
        f"temperature {gates.temperature:g}, stretch {gates.stretch_low:g} to "
        f"{gates.stretch_high:g}, log α at the start {begin}, rate {gates.lr:g}; "
        f"{_RULES[gates.eval]}. {describe_setting(model, starts)}"
    )
