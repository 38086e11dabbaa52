"""Models of the Hugging Face library: imported translation models, and classifiers."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, RootModel

from headcount.base.settings.model import ModelSettings
from headcount.base.settings.reader import read_settings
from headcount.base.settings.section import (
    LARGEST,
    NO_BRACES,
    SHA256,
    CorpusName,
    Faults,
    FileName,
    Language,
    Precision,
    Section,
)

HUB_NAME = r"[\w.-]+(/[\w.-]+)?"
COMMIT = r"[0-9a-f]{40}"
WEIGHTS = "model.safetensors"


class Origin(Section):
    """A model of the Hugging Face library: one of its hub, or a folder of one's own."""

    hub: str | None = Field(None, pattern=f"^{HUB_NAME}$")
    """Name on the hub, as in `google-bert/bert-base-uncased`; goes with `revision`."""
    revision: str | None = Field(None, pattern=f"^{COMMIT}$")
    """Its commit in full: a name alone may mean other weights tomorrow."""
    path: str | None = Field(None, pattern=NO_BRACES)
    """A folder of one's own, instead of `hub`; relative to the project's folder."""
    files: dict[FileName, Annotated[str, Field(pattern=SHA256)] | None] = {}
    """Files with SHA-256, as `scripts/describe_model.py` prints them. Optional with `path`, and for
    classifiers; without it all files that the model may be read from are taken."""

    def _faults(self) -> Faults:
        wrong = (self.hub is None) == (self.path is None) or bool(self.hub) != bool(self.revision)
        yield "expected hub and revision, or path", wrong
        yield f"files: expected {WEIGHTS} among them", self.files and WEIGHTS not in self.files
        yield "files: expected the SHA-256 of each", self.hub and None in self.files.values()


class PretrainedModel(Origin):
    """A translation model of the Hugging Face library that experiments may import."""

    licence: str = Field(min_length=1)
    """What the model may be used for."""
    citation: str = Field(min_length=1)
    """Whom to cite."""
    codes: dict[Language, Annotated[str, Field(min_length=1)]] = {}
    """The model's names of languages that differ from the pairs', as in `{de: deu_Latn}`."""

    def _faults(self) -> Faults:
        yield "files: expected the files of a model of the hub", self.hub and not self.files


Models = RootModel[dict[CorpusName, PretrainedModel]]


def load_models(path: Path) -> dict[str, PretrainedModel]:
    """Return every model described in the file, by name. Raises UserError for every fault in it."""
    return read_settings(path, Models).root


class ExperimentModel(ModelSettings):
    """Sizes of the Transformer. A size that is not named comes from the preset."""

    imported: CorpusName | None = None
    """A model of `models.yaml` with weights and subwords; `bpe` is then left out, and sizes here
    must be the model's, as `scripts/describe_model.py` prints them."""
    fine_tune: bool | None = None
    """Of an imported model. false, or left out: `baseline` is the model as it is, and the only
    training run. true: every training run starts from its weights, `baseline` included."""

    def _faults(self) -> Faults:
        yield "fine_tune: goes with imported", self.fine_tune is not None and not self.imported

    @property
    def frozen(self) -> bool:
        """True if the baseline is an imported model without further training."""
        return self.imported is not None and not self.fine_tune

    @property
    def sizes(self) -> ModelSettings:
        """The sizes alone, without the origin of the weights, as scripts take them."""
        return ModelSettings(**self.model_dump(exclude={"imported", "fine_tune"}))


class ClassifierModel(Origin):
    """A model of the Hugging Face library: one of its hub, or a folder of one's own."""

    fine_tune: bool = True
    """Fine-tune it on the corpus; else it is taken as it is, and must be a classifier already."""
    labels: list[str] = []
    """Names of the labels of a model that is not fine-tuned, in the order of their numbers."""

    def _faults(self) -> Faults:
        yield "labels: go with fine_tune: false", self.fine_tune and self.labels


class EntailmentSettings(Section):
    """Division of labelled pairs, the same for every model and seed."""

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
