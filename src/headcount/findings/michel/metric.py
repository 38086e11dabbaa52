"""What models lose without heads: its name in captions, on axes and in tables."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """Names of one score; larger means better."""

    word: str  # within a sentence
    initial: str  # at the beginning of one
    axis: str  # on an axis, with its unit
    counted: str  # what a test set consists of


BLEU = Metric("BLEU", "BLEU", "BLEU", "sentences")
ACCURACY = Metric("accuracy", "Accuracy", "accuracy (%)", "pairs")
