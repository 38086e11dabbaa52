"""How many updates trained each model, from the curves that the trainings left."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from headcount.base.errors import UserError
from headcount.findings.run_tables import KEYS, curve_table
from headcount.findings.scores import Key
from headcount.findings.voita_pruning.heads import key_of

_UNEQUAL = (
    "The two differ, so BLEU from scratch beside BLEU after pruning shows the work of updates as "
    "well as of heads, and speaks neither for nor against the paper."
)


class Updates:
    """Updates of every training, by pair, run and seed."""

    def __init__(self, curves: list[Path]):
        """Takes the curves.csv of pruned runs and of the runs that they start from."""
        steps = curve_table(curves).groupby(KEYS)["step"].max()
        self._of: dict[Key, int] = {key: int(step) for key, step in steps.items()}

    def of(self, key: Key) -> int:
        """Updates of one training, without those of the model it began with.

        Raises UserError if its curve is missing.
        """
        if key not in self._of:
            raise UserError(
                f"curves: expected curves.csv of {key[1]} ({key[0]}, seed {key[2]}), found none; "
                "train it first"
            )
        return self._of[key]

    def describe(self, models: pd.DataFrame) -> str:
        """Sentences: how long models were fine-tuned, after what, and how long from scratch.

        `models` comes from `read_pruned`.
        """
        anew = models["how"] == "scratch"
        before, tuned = (self._different(models[~anew], name) for name in ("start", "run"))
        words = f"{_counts(before)} of the model that was pruned, "
        words += f"then {_counts(tuned)} of fine-tuning"
        scratch = self._different(models[anew], "run")
        if not scratch:
            return f"Updates, by the curves: {words}."
        words += f"; {_counts(scratch)} from scratch"
        return f"Updates, by the curves: {words}.{'' if scratch == tuned else f' {_UNEQUAL}'}"

    def _different(self, models: pd.DataFrame, name: str) -> set[int]:
        """Numbers of updates of these models, or of those that `key_of` tells by that name."""
        return {self.of(key_of(model, name)) for model in models.to_dict("records")}


def _counts(numbers: Iterable[int]) -> str:
    """Different numbers, as words."""
    return " or ".join(f"{number:,}" for number in sorted(numbers))
