"""Accuracy of a Hugging Face classifier of sentence pairs under masks of its heads."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from tqdm import tqdm

from headcount.ablation.masked_bleu import Differences, Masked, distinct
from headcount.ablation.masking import DEV, read_single_effects, write_ablation
from headcount.ablation.pruning_orders import list_curves
from headcount.ablation.pruning_profile import write_curves
from headcount.base.addresses import HeadGrid
from headcount.base.errors import UserError
from headcount.base.ranking import Heads, head_masks
from headcount.base.settings.heads import ClassifierSettings
from headcount.base.settings.section import nearest
from headcount.data.entailment import Example, read_pairs
from headcount.data.lines import FoundText
from headcount.model.machine import pick_device
from headcount.model.transformer import first_device
from headcount.scoring.bootstrap import compare_classifiers
from headcount_hf.classifiers.classifier_files import LONGEST, read_classifier
from headcount_hf.hooks.multiplied import HookedEncoder


@dataclass(frozen=True)
class Classifier(Masked):
    """An encoder, its tokeniser and the numbers of its labels."""

    encoder: HookedEncoder
    tokeniser: Any
    labels: dict[str, int]  # by name in lower case

    metric = "accuracy"

    @property
    def grid(self) -> HeadGrid:
        return self.encoder.grid

    @classmethod
    def load(cls, folder: Path, labels: Sequence[str] = (), device: str = "auto") -> "Classifier":
        """Return the model in a folder, with labels as `number_labels` reads them."""
        place = pick_device(device)
        tokeniser, model = read_classifier(folder)
        known = [label for _, label in sorted(model.config.id2label.items())]
        numbers = number_labels(known, labels)
        encoder = HookedEncoder(model.to(place), model.config.num_attention_heads)
        return cls(encoder, tokeniser, numbers)

    def gold(self, pairs: Sequence[Example]) -> np.ndarray:
        """Return numbers of the pairs' labels. Raises UserError for an unknown label."""
        for pair in pairs:
            if pair.label.lower() not in self.labels:
                known = f"{', '.join(self.labels)}; {nearest(pair.label, self.labels)}"
                raise UserError(f"label {pair.label!r}: expected one of the model's, {known}")
        return np.array([self.labels[pair.label.lower()] for pair in pairs])

    def correct(
        self,
        pairs: Sequence[Example],
        sets: Sequence[Heads],
        done: Callable[[int], object] = lambda pairs: None,
        batch: int = 64,
    ) -> dict[Heads, np.ndarray]:
        """Return 1 for every correct pair, else 0, [pairs], by set of masked heads."""
        gold = self.gold(pairs)
        masks = torch.from_numpy(head_masks(sets, self.grid.size))
        right = np.zeros((len(sets), len(pairs)))
        with torch.inference_mode():
            for places, inputs in self._batches(pairs, batch):
                for number, mask in enumerate(masks):
                    guesses = self._logits(inputs, mask).argmax(-1).cpu().numpy()
                    right[number, places] = guesses == gold[places]
                    done(len(places))
        return dict(zip(sets, right, strict=True))

    def importance(
        self, pairs: Sequence[Example], silent: Heads = (), batch: int = 32
    ) -> np.ndarray:
        """Return mean |∂L/∂ξ| at ξ = 1 over pairs, [heads], in nats (Michel et al. 2019)."""
        gold = torch.from_numpy(self.gold(pairs)).to(first_device(self.encoder))
        total = np.zeros(self.grid.size)
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

    def compare(
        self, pairs: Sequence[Example], sets: Iterable[Heads], samples: int = 1000
    ) -> Differences:
        sets = distinct(sets)
        with tqdm(total=len(sets) * len(pairs), unit="pair", disable=None) as bar:
            right = self.correct(pairs, sets, bar.update)
        return dict(zip(sets, compare_classifiers(list(right.values()), samples), strict=True))

    def facts(self, tests: Mapping[str, Any], sets: Iterable[Heads]) -> dict[str, Any]:
        return {"pairs": {test: len(pairs) for test, pairs in tests.items()}}

    def _logits(self, inputs: dict[str, Tensor], multiplier: Tensor) -> Tensor:
        with self.encoder.multiplied(multiplier.to(first_device(self.encoder))):
            return self.encoder.model(**inputs).logits

    def _batches(
        self, pairs: Sequence[Example], size: int
    ) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
        """Yield places and model inputs on the device, pairs of similar length together."""
        order = sorted(range(len(pairs)), key=lambda n: len(pairs[n].first + pairs[n].second))
        for start in range(0, len(order), size):
            places = order[start : start + size]
            texts = [[pairs[n].first for n in places], [pairs[n].second for n in places]]
            options = {"padding": True, "truncation": True, "max_length": LONGEST}
            inputs = self.tokeniser(*texts, return_tensors="pt", **options)
            yield places, dict(inputs.to(first_device(self.encoder)))


def write_classifier_ablation(
    classifier: Classifier,
    files: Mapping[str, Path],
    settings: ClassifierSettings,
    seed: int,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write classifier_ablation.csv, classifier_profile.csv and _areas.csv into a folder.

    They have `accuracy` in percent in place of `bleu`. `files`: labelled pairs by test set, `DEV`
    before `matched`, which scores pruning, and `mismatched`.
    """
    tests = {test: read_pairs(FoundText(path), settings.pairs) for test, path in files.items()}
    for pairs in tests.values():
        classifier.gold(pairs)  # refuse labels before any work
    single = out / "classifier_ablation.csv"
    write_ablation(classifier, tests, single, origin)
    effects = read_single_effects(single, classifier.grid, classifier.metric)
    measure, again = cache(partial(classifier.importance, tests[DEV])), settings.reestimate
    curves = list_curves(
        classifier.grid, lambda silent: measure(silent if again else ()), effects, settings, seed
    )
    write_curves(classifier, tests, "matched", list(curves), out / "classifier_profile.csv", origin)


def number_labels(known: Sequence[str], named: Sequence[str]) -> dict[str, int]:
    """Return the number of every label, `named` or else `known` ones in their order."""
    known, named = ([label.lower() for label in labels] for labels in (known, named))
    # The library's name of a label without a name.
    nameless = all(re.fullmatch(r"label_\d+", label) for label in known)
    if nameless:
        fits = len(set(named)) == len(named) == len(known)
    else:
        fits = not named or sorted(named) == sorted(known)
    if not fits:
        raise UserError(
            f"--labels: expected a name for every label of the model, {', '.join(known)}, in this "
            "order, such as --labels contradiction neutral entailment, found "
            f"{', '.join(named) or 'none'}"
        )
    return {label: number for number, label in enumerate(named or known)}
