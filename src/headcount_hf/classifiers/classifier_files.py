"""The model and tokeniser in the folder of a Hugging Face classifier, whose code never runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from headcount_hf.pretrained.library import Kind, open_model, open_tokeniser

LONGEST = 128  # subwords of a pair, which is cut there
CLASSIFIER = Kind("AutoModelForSequenceClassification", "classifier", "bert")


def read_classifier(folder: Path, labels: Sequence[str] = ()) -> tuple[Any, nn.Module]:
    """Return tokeniser and model. With `labels`, the classifying layer may be missing."""
    named = dict(enumerate(labels))
    names = {"id2label": named, "label2id": {v: k for k, v in named.items()}} if labels else {}
    model, _ = open_model(folder, CLASSIFIER, ".layer." if labels else "", **names)
    return open_tokeniser(folder, CLASSIFIER), model
