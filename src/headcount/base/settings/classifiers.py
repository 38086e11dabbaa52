"""Settings of classifiers of sentence pairs: where they come from, and how they are fine-tuned."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from headcount.base.settings.names import CorpusName, check_corpus_name
from headcount.base.settings.pretrained import Origin
from headcount.base.settings.section import LARGEST, Precision, Section


class ClassifierModel(Origin):
    """A model of the Hugging Face library: one of its hub, or a folder of one's own."""

    fine_tune: bool = True
    """Fine-tune it on the corpus; else it is taken as it is, and must be a classifier already."""

    labels: list[str] = []
    """Of one that is not fine-tuned: names of its labels in the order of their numbers, where its
    own are only numbered."""

    @model_validator(mode="after")
    def _check_labels(self) -> "ClassifierModel":
        if self.fine_tune and self.labels:
            raise ValueError("labels: a fine-tuned model has those of the corpus; leave them out")
        return self


class EntailmentSettings(Section):
    """How labelled pairs are divided, the same way for every model and seed."""

    dev_pairs: int = Field(5000, ge=1)
    """Training pairs that are drawn to choose and rank heads, and left out of fine-tuning."""

    train_pairs: int | None = Field(None, ge=1)
    """Training pairs to draw of the others for fine-tuning; without it all."""


class ClassifiersSettings(EntailmentSettings):
    """Classifiers of sentence pairs, whose heads are removed (Michel et al., BERT)."""

    corpus: CorpusName = "multinli"
    """A corpus with `entailment`: its `train`, and `matched` and `mismatched` to score."""

    models: dict[Annotated[str, AfterValidator(check_corpus_name)], ClassifierModel] = {}
    """Models by a name of one's own (keys below); each is ablated with every seed. Empty: none, and
    no tables."""


class FineTuningSettings(Precision):
    """Fine-tuning of classifiers, by the library's own trainer: AdamW with a weight decay of 0.01;
    the rate falls to 0."""

    epochs: int = Field(3, ge=1, le=1000)
    """Passes over the training pairs."""

    batch: int = Field(32, ge=1, le=LARGEST)
    """Pairs of an update."""

    peak_lr: float = Field(2e-5, gt=0)
    """Highest rate."""

    warmup: float = Field(0.1, ge=0, lt=1)
    """Share of the updates in which the rate rises, in a straight line."""
