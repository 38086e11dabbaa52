"""A classifier of sentence pairs from the Hugging Face library, under masks of its heads."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from headcount.base.errors import UserError
from headcount.base.ranking import Heads, head_masks
from headcount.base.settings.names import nearest
from headcount.classifiers.classifier_files import read_classifier
from headcount.classifiers.hooked_encoder import HookedEncoder
from headcount.data.entailment import Example
from headcount.model.machine import pick_device

LONGEST = 128  # subwords of a pair; longer ones are cut
_NUMBERED = re.compile(r"label_\d+")  # what the library calls a label that nobody named


@dataclass(frozen=True)
class Classifier:
    """An encoder, its tokeniser and the numbers of its labels."""

    encoder: HookedEncoder
    tokeniser: Any
    labels: dict[str, int]  # by name in lower case

    @classmethod
    def load(cls, folder: Path, labels: Sequence[str] = (), device: str = "auto") -> "Classifier":
        """The model in a folder.

        `labels`: names in the order of their numbers; without any the model's own. Raises
        EnvironmentFault where the library or the device is missing, UserError where the model is,
        and for labels that do not fit it.
        """
        place = pick_device(device)
        tokeniser, model = read_classifier(folder)
        known = [label for _, label in sorted(model.config.id2label.items())]
        numbers = number_labels(known, labels)
        encoder = HookedEncoder(model.to(place), model.config.num_attention_heads)
        return cls(encoder, tokeniser, numbers)

    def gold(self, pairs: Sequence[Example]) -> np.ndarray:
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
        pairs: Sequence[Example],
        sets: Sequence[Heads],
        done: Callable[[int], object] = lambda pairs: None,
        batch: int = 64,
    ) -> dict[Heads, np.ndarray]:
        """Which pairs are classified right with each set of heads masked, [pairs] of 0 and 1.

        Layers below the first masked one run once a batch.
        """
        gold = self.gold(pairs)
        masks = torch.from_numpy(head_masks(sets, self.encoder.grid.size))
        found = np.zeros((len(sets), len(pairs)))
        with torch.inference_mode():
            for places, inputs in self._batches(pairs, batch):
                with self.encoder.recorded() as recorded:
                    self.encoder.model(**inputs)
                entering = list(recorded.values())
                for number, mask in enumerate(masks):
                    layer = self.encoder.first_masked(mask)
                    with self.encoder.resumed(layer, entering[layer]):
                        guesses = self._logits(inputs, mask).argmax(-1).cpu().numpy()
                    found[number, places] = guesses == gold[places]
                    done(len(places))
        return dict(zip(sets, found, strict=True))

    def importance(
        self, pairs: Sequence[Example], silent: Heads = (), batch: int = 32
    ) -> np.ndarray:
        """Mean over pairs of |∂L/∂ξ| at ξ = 1, [heads]; nats, larger means more important.

        Of silent heads, whose ξ is 0, it is 0: they are not there. Source: Michel et al. 2019.
        """
        gold = torch.from_numpy(self.gold(pairs)).to(self.encoder.device)
        total = np.zeros(self.encoder.grid.size)
        self.encoder.model.requires_grad_(False)
        for places, inputs in self._batches(pairs, batch):
            multiplier = torch.ones(len(places), len(total), device=gold.device)
            multiplier[:, list(silent)] = 0
            logits = self._logits(inputs, multiplier.requires_grad_())
            loss = functional.cross_entropy(logits, gold[places], reduction="sum")
            (slopes,) = torch.autograd.grad(loss, multiplier)
            total += slopes.abs().sum(0).double().cpu().numpy()
        total[list(silent)] = 0
        return total / len(pairs)

    def _logits(self, inputs: dict[str, Tensor], multiplier: Tensor) -> Tensor:
        with self.encoder.multiplied(multiplier.to(self.encoder.device)):
            return self.encoder.model(**inputs).logits

    def _batches(
        self, pairs: Sequence[Example], size: int
    ) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
        """Places, and model inputs where the model is; pairs of like length together."""
        order = sorted(range(len(pairs)), key=lambda n: len(pairs[n].first + pairs[n].second))
        for start in range(0, len(order), size):
            places = order[start : start + size]
            texts = [[pairs[n].first for n in places], [pairs[n].second for n in places]]
            options = {"padding": True, "truncation": True, "max_length": LONGEST}
            inputs = self.tokeniser(*texts, return_tensors="pt", **options)
            yield places, dict(inputs.to(self.encoder.device))


def number_labels(known: Sequence[str], named: Sequence[str]) -> dict[str, int]:
    """Number of each label by its name in lower case: `named`, or without any the model's `known`.

    Both stand in the order of their numbers. Raises UserError where neither names the labels, and
    for names that are not one for each label, or none of the model's where it has names.
    """
    known, named = ([label.lower() for label in labels] for labels in (known, named))
    nameless = all(_NUMBERED.fullmatch(label) for label in known)
    if not named and nameless:
        raise UserError(
            f"--labels: the model calls its labels {', '.join(known)}, which does not tell what "
            "they mean; name them in this order, such as --labels contradiction neutral entailment"
        )
    if named and (len(named) != len(known) or len(set(named)) < len(named)):
        raise UserError(
            f"--labels: expected {len(known)} different names with spaces between, one for each of "
            f"{', '.join(known)}; found {', '.join(named)}"
        )
    for label in named:
        if not nameless and label not in known:
            raise UserError(
                f"--labels: {label!r} is none of the model's labels; {nearest(label, known)}"
            )
    return {label: number for number, label in enumerate(named or known)}
