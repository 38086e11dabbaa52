"""A classifier of sentence pairs from the Hugging Face library, under masks of its heads."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.settings.nearest import nearest
from headcount.data.entailment import Pair
from headcount.model.hooked_encoder import HookedEncoder
from headcount.runs.masked_bleu import Heads

LONGEST = 128  # subwords of a pair; longer ones are cut


@dataclass(frozen=True)
class Classifier:
    """An encoder, its tokeniser and the numbers of its labels."""

    encoder: HookedEncoder
    tokeniser: Any
    labels: dict[str, int]  # by name in lower case

    @classmethod
    def load(cls, name: str) -> "Classifier":
        """A model of the hub by its name, or in a local folder.

        Raises EnvironmentFault where the library is missing, UserError where the model is.
        """
        try:
            from transformers import AutoModelForSequenceClassification, AutoTokenizer
        except ImportError as fault:
            raise EnvironmentFault(
                "classifiers need the Hugging Face library; pip install -e '.[bert]'"
            ) from fault
        try:
            tokeniser = AutoTokenizer.from_pretrained(name)
            model = AutoModelForSequenceClassification.from_pretrained(name).eval()
        except (OSError, ValueError) as fault:
            raise UserError(
                f"--model {name}: expected a folder or a name on the hub with a classifier and its "
                f"tokeniser: {str(fault).splitlines()[0]}"
            ) from fault
        labels = {name.lower(): int(n) for n, name in model.config.id2label.items()}
        return cls(HookedEncoder(model, model.config.num_attention_heads), tokeniser, labels)

    def gold(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Numbers of the pairs' labels. Raises UserError for one that the model does not have."""
        for pair in pairs:
            if pair.label.lower() not in self.labels:
                raise UserError(
                    f"label {pair.label!r}: the model has {', '.join(self.labels)}; "
                    f"{nearest(pair.label, self.labels)}; is it trained for this task?"
                )
        return np.array([self.labels[pair.label.lower()] for pair in pairs])

    def correct(
        self,
        pairs: Sequence[Pair],
        sets: Sequence[Heads],
        done: Callable[[int], object] = lambda pairs: None,
        batch: int = 64,
    ) -> dict[Heads, np.ndarray]:
        """Which pairs are classified right with each set of heads masked, [pairs] of 0 and 1."""
        gold = self.gold(pairs)
        masks = torch.ones(len(sets), self.encoder.grid.size)
        for mask, heads in zip(masks, sets, strict=True):
            mask[list(heads)] = 0
        found = np.zeros((len(sets), len(pairs)))
        with torch.inference_mode():
            for places, inputs in self._batches(pairs, batch):
                for number, mask in enumerate(masks):
                    guesses = self._logits(inputs, mask).argmax(-1).cpu().numpy()
                    found[number, places] = guesses == gold[places]
                    done(len(places))
        return dict(zip(sets, found, strict=True))

    def importance(self, pairs: Sequence[Pair], batch: int = 32) -> np.ndarray:
        """Mean over pairs of |∂L/∂ξ| at ξ = 1, [heads]; nats, larger means more important.

        Source: Michel et al. 2019.
        """
        gold = torch.from_numpy(self.gold(pairs)).to(self.encoder.device)
        total = np.zeros(self.encoder.grid.size)
        self.encoder.model.requires_grad_(False)
        for places, inputs in self._batches(pairs, batch):
            ones = torch.ones(len(places), len(total), device=gold.device, requires_grad=True)
            logits = self._logits(inputs, ones)
            loss = functional.cross_entropy(logits, gold[places], reduction="sum")
            (slopes,) = torch.autograd.grad(loss, ones)
            total += slopes.abs().sum(0).double().cpu().numpy()
        return total / len(pairs)

    def _logits(self, inputs: dict[str, Tensor], multiplier: Tensor) -> Tensor:
        with self.encoder.multiplied(multiplier.to(self.encoder.device)):
            return self.encoder.model(**inputs).logits

    def _batches(
        self, pairs: Sequence[Pair], size: int
    ) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
        """Places and model inputs, pairs of like length together."""
        order = sorted(range(len(pairs)), key=lambda n: len(pairs[n].first + pairs[n].second))
        for start in range(0, len(order), size):
            places = order[start : start + size]
            texts = [[pairs[n].first for n in places], [pairs[n].second for n in places]]
            options = {"padding": True, "truncation": True, "max_length": LONGEST}
            yield places, dict(self.tokeniser(*texts, return_tensors="pt", **options))
