"""Models of the Hugging Face library: where they come from, and one as an experiment's model."""

from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, RootModel, model_validator

from headcount.base.settings.model import ModelSettings
from headcount.base.settings.names import NO_BRACES, SHA256, CorpusName, FileName, Language
from headcount.base.settings.reading.reader import read_settings
from headcount.base.settings.section import Section, refuse

HUB_NAME = r"[\w.-]+(/[\w.-]+)?"
COMMIT = r"[0-9a-f]{40}"
WEIGHTS = "model.safetensors"

_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5", ".msgpack")


class Origin(Section):
    """A model of the Hugging Face library: one of its hub, or a folder of one's own."""

    hub: str | None = Field(None, pattern=f"^{HUB_NAME}$")
    """Name on the hub, as in `google-bert/bert-base-uncased`; goes with `revision`."""
    revision: str | None = Field(None, pattern=f"^{COMMIT}$")
    """Its commit in full: a name alone may mean other weights tomorrow."""
    path: str | None = Field(None, pattern=NO_BRACES)
    """A folder of one's own, instead of `hub`; relative to the project's folder."""

    @model_validator(mode="after")
    def _check_origin(self) -> "Origin":
        wrong = (self.hub is None) == (self.path is None) or bool(self.hub) != bool(self.revision)
        refuse(("expected hub and revision, or path", wrong))
        return self


class PretrainedFiles(Origin):
    """The files of a translation model."""

    files: dict[FileName, Annotated[str, Field(pattern=SHA256)] | None] = {}
    """Its files, each with its SHA-256: `config.json`, `model.safetensors`, and those of its
    subwords; `scripts/describe_model.py` prints them. May be left out for a folder of one's own."""

    @model_validator(mode="after")
    def _check_files(self) -> "PretrainedFiles":
        pickles = any(name.endswith(_PICKLES) for name in self.files)
        lacking = (self.hub or self.files) and WEIGHTS not in self.files
        refuse(
            (f"files: a pickle can run code; save the weights as {WEIGHTS}", pickles),
            (f"files: expected {WEIGHTS} among them", lacking),
            ("files: expected the SHA-256 of each", self.hub and None in self.files.values()),
        )
        return self


class PretrainedModel(PretrainedFiles):
    """A translation model of the Hugging Face library that experiments may import."""

    licence: str = Field(min_length=1)
    """What the model may be used for."""
    citation: str = Field(min_length=1)
    """Whom to cite."""
    codes: dict[Language, Annotated[str, Field(min_length=1)]] = {}
    """The model's names of languages that differ from the pairs', as in `{de: deu_Latn}`."""


class Models(RootModel[dict[CorpusName, PretrainedModel]]):
    """The models of `models.yaml` by name."""

    model_config = ConfigDict(frozen=True, strict=True)


def load_models(path: Path) -> dict[str, PretrainedModel]:
    """Return every model described in the file, by name. Raises UserError for every fault in it."""
    return read_settings(path, Models).root


class ExperimentModel(ModelSettings):
    """Sizes of the Transformer. A size that is not named comes from the preset."""

    imported: CorpusName | None = None
    """A model of `models.yaml` whose weights and subwords are taken; `bpe` is then left out. The
    sizes must be its own: `scripts/describe_model.py` prints them."""
    fine_tune: bool | None = None
    """Of an imported model. false, or left out: `baseline` is the model as it is, and the only
    training run. true: every training run starts from its weights, `baseline` included."""

    @model_validator(mode="after")
    def _check_import(self) -> "ExperimentModel":
        refuse(("fine_tune: goes with imported", self.fine_tune is not None and not self.imported))
        return self

    @property
    def as_it_is(self) -> bool:
        """Whether the baseline is an imported model that nothing here has trained."""
        return self.imported is not None and not self.fine_tune

    @property
    def sizes(self) -> ModelSettings:
        """The sizes alone, without the origin of the weights, as scripts take them."""
        return ModelSettings(**self.model_dump(exclude={"imported", "fine_tune"}))
