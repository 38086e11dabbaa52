"""A classifier of sentence pairs from the Hugging Face library, under masks of its heads.

They are removed one by one, all but one, and in steps: accuracy instead of BLEU.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from tqdm import tqdm

from headcount.ablation.ablation import (
    COLUMNS,
    DEV,
    ablation_rows,
    read_single_effects,
    resamples_for,
)
from headcount.ablation.masked_bleu import Differences
from headcount.ablation.pruning_orders import list_curves
from headcount.ablation.pruning_profile import COLUMNS as PROFILE_COLUMNS
from headcount.ablation.pruning_profile import write_curves
from headcount.base.errors import UserError
from headcount.base.files import write_result
from headcount.base.ranking import Heads, head_masks
from headcount.base.settings.ablation import AblationSettings, ClassifierSettings, PruningSteps
from headcount.base.settings.names import nearest
from headcount.data.entailment import Example, read_pairs
from headcount.model.machine import pick_device
from headcount.scoring.bootstrap import compare_classifiers
from headcount_hf.classifiers.classifier_files import read_classifier
from headcount_hf.hooks.hooked_encoder import HookedEncoder

LONGEST = 128  # subwords of a pair; longer ones are cut
_NEAR = 1e-3  # of the largest logit: far above what rounding does
_NUMBERED = re.compile(r"label_\d+")  # what the library calls a label that nobody named


@dataclass(frozen=True)
class Classifier:
    """An encoder, its tokeniser and the numbers of its labels."""

    encoder: HookedEncoder
    tokeniser: Any
    labels: dict[str, int]  # by name in lower case

    @classmethod
    def load(cls, folder: Path, labels: Sequence[str] = (), device: str = "auto") -> "Classifier":
        """Return the model in a folder.

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
        """Return numbers of the pairs' labels. Raises UserError for an unknown label."""
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
        """Return for each set of heads masked which pairs are right, [pairs] of 0 and 1.

        Layers below the first masked one run once a batch.
        """
        gold, checked = self.gold(pairs), False
        masks = torch.from_numpy(head_masks(sets, self.encoder.grid.size))
        found = np.zeros((len(sets), len(pairs)))
        with torch.inference_mode():
            for places, inputs in self._batches(pairs, batch):
                with self.encoder.recorded() as recorded:
                    whole = self.encoder.model(**inputs).logits
                entering = list(recorded.values())
                checked = checked or self._goes_on(inputs, entering, whole)
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
        """Return the mean over pairs of |∂L/∂ξ| at ξ = 1, [heads]; nats, larger is more important.

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

    def _goes_on(
        self, inputs: dict[str, Tensor], entering: Sequence[Tensor], whole: Tensor
    ) -> bool:
        """Return True if the model gives the same logits when it goes on from any layer.

        Raises UserError where it does not: then the library does more between its layers.
        """
        for layer, states in enumerate(entering):
            with self.encoder.resumed(layer, states):
                gap = float((self.encoder.model(**inputs).logits - whole).abs().max())
            if not gap <= _NEAR * max(1.0, float(whole.abs().max())):  # nan, too
                raise UserError(
                    f"{type(self.encoder.model).__name__}: expected the same logits when the model "
                    f"goes on from layer {layer}, found others by up to {gap:.1e}; name a model "
                    "whose layers follow one another, such as BERT, RoBERTa or DeBERTa without "
                    "convolution"
                )
        return True

    def _logits(self, inputs: dict[str, Tensor], multiplier: Tensor) -> Tensor:
        with self.encoder.multiplied(multiplier.to(self.encoder.device)):
            return self.encoder.model(**inputs).logits

    def _batches(
        self, pairs: Sequence[Example], size: int
    ) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
        """Give places, and model inputs where the model is; pairs of like length together."""
        order = sorted(range(len(pairs)), key=lambda n: len(pairs[n].first + pairs[n].second))
        for start in range(0, len(order), size):
            places = order[start : start + size]
            texts = [[pairs[n].first for n in places], [pairs[n].second for n in places]]
            options = {"padding": True, "truncation": True, "max_length": LONGEST}
            inputs = self.tokeniser(*texts, return_tensors="pt", **options)
            yield places, dict(inputs.to(self.encoder.device))


def write_classifier_ablation(
    classifier: Classifier,
    files: Mapping[str, Path],
    settings: ClassifierSettings,
    seed: int,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write classifier_ablation.csv, classifier_profile.csv and _areas.csv into a folder.

    They have the columns of ablation.csv, pruning_profile.csv and its areas, with `accuracy` in
    percent in place of `bleu`. `files`: labelled pairs by test set, `DEV` before `matched` and
    `mismatched`. Importance is measured on dev, pruning scored on matched. Raises
    UserError for pairs without a label that the model knows.
    """
    tests = {test: read_pairs(path, settings.pairs) for test, path in files.items()}
    for pairs in tests.values():
        classifier.gold(pairs)  # refuses labels before any work
    grid = classifier.encoder.grid
    samples = resamples_for(grid)

    def compare(test: str, sets: Sequence[Heads], samples: int = samples) -> Differences:
        return compare_masks(classifier, tests[test], sets, samples)

    rows = ablation_rows(grid, list(tests), compare)
    sizes = {test: len(pairs) for test, pairs in tests.items()}
    facts = {"pairs": sizes, "provenance": origin}
    single = out / "classifier_ablation.csv"
    write_result(single, accuracy_columns(COLUMNS), rows, facts)
    effects = read_single_effects(single, grid, accuracy_columns(COLUMNS))
    pruning = AblationSettings(**settings.model_dump(include={*PruningSteps.model_fields}))
    ranked = partial(classifier.importance, tests[DEV])
    curves = list(list_curves(grid, ranked, effects, pruning, seed))
    scores = compare("matched", [heads for curve in curves for heads in curve.sets], 1000)
    columns, profile = accuracy_columns(PROFILE_COLUMNS), out / "classifier_profile.csv"
    write_curves(grid, "matched", curves, scores, {}, columns, profile, facts)


def compare_masks(
    classifier: Classifier, pairs: list[Example], sets: Sequence[Heads], samples: int
) -> Differences:
    """Return the accuracy of each set of heads masked against no mask, by paired bootstrap."""
    distinct = list(dict.fromkeys([(), *sets]))
    with tqdm(total=len(distinct) * len(pairs), unit="pair", disable=None) as bar:
        right = classifier.correct(pairs, distinct, bar.update)
    judged = compare_classifiers(list(right.values()), samples)
    return dict(zip(right, judged, strict=True))


def accuracy_columns(columns: Sequence[str]) -> list[str]:
    """Return the columns of a file about BLEU with accuracy in its place."""
    return ["accuracy" if column == "bleu" else column for column in columns]


def number_labels(known: Sequence[str], named: Sequence[str]) -> dict[str, int]:
    """Return the number of each label by its name in lower case: `named`, or else `known`.

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
