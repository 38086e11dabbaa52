"""Settings of classifiers of sentence pairs: where they come from, and how they are fine-tuned."""

from pydantic import Field, model_validator

from headcount.base.settings.names import CorpusName
from headcount.base.settings.pretrained import Origin
from headcount.base.settings.section import LARGEST, Precision, Section, refuse


class ClassifierModel(Origin):
    """A model of the Hugging Face library: one of its hub, or a folder of one's own."""

    fine_tune: bool = True
    """Fine-tune it on the corpus; else it is taken as it is, and must be a classifier already."""
    labels: list[str] = []
    """Names of the labels of a model that is not fine-tuned, in the order of their numbers."""

    @model_validator(mode="after")
    def _check_labels(self) -> "ClassifierModel":
        refuse(("labels: go with fine_tune: false", self.fine_tune and self.labels))
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
    models: dict[CorpusName, ClassifierModel] = {}
    """Models by a name of one's own (keys below); each is ablated with every seed."""


class FineTuningSettings(Precision):
    """Fine-tuning of classifiers, by the library's own trainer: AdamW, weight decay 0.01."""

    epochs: int = Field(3, ge=1, le=1000)
    """Passes over the training pairs."""
    batch: int = Field(32, ge=1, le=LARGEST)
    """Pairs of an update."""
    peak_lr: float = Field(2e-5, gt=0)
    """Highest rate; it falls to 0."""
    warmup: float = Field(0.1, ge=0, lt=1)
    """Share of the updates in which the rate rises, in a straight line."""
