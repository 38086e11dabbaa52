"""Models of the Hugging Face library: where they come from, and one as an experiment's model."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, RootModel, model_validator

from headcount.base.settings.model import ModelSettings
from headcount.base.settings.names import CorpusName, FileName, Language, fitting
from headcount.base.settings.reader import read_settings
from headcount.base.settings.section import Section

HUB_NAME = r"[\w.-]+(/[\w.-]+)?"
COMMIT = r"[0-9a-f]{40}"
WEIGHTS = "model.safetensors"

_HubName = Annotated[
    str, AfterValidator(fitting(HUB_NAME, "a name on the hub, as google-bert/bert-base"))
]
_Commit = Annotated[
    str, AfterValidator(fitting(COMMIT, "a whole commit, 40 digits and letters a to f"))
]
_Path = Annotated[str, AfterValidator(fitting(r"[^\n{}]+", "a folder, without braces"))]
_Sha256 = Annotated[
    str, AfterValidator(fitting("[0-9a-f]{64}", "64 hexadecimal digits in lower case"))
]
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5", ".msgpack")


class Origin(Section):
    """A model of the Hugging Face library: one of its hub, or a folder of one's own."""

    hub: _HubName | None = None
    """Name on the hub, as in `google-bert/bert-base-uncased`; goes with `revision`."""

    revision: _Commit | None = None
    """Its commit in full: a name alone may mean other weights tomorrow."""

    path: _Path | None = None
    """A folder of one's own, instead of `hub`; relative to the project's folder."""

    @model_validator(mode="after")
    def _check_origin(self) -> "Origin":
        if (self.hub is None) == (self.path is None) or (self.hub is None) != (
            self.revision is None
        ):
            raise ValueError("expected hub and revision, or path")
        return self


class PretrainedFiles(Origin):
    """What of a translation model is fetched."""

    files: dict[FileName, _Sha256 | None] = {}
    """Its files, each with its SHA-256: `config.json`, `model.safetensors`, and those of its
    subwords. `scripts/describe_model.py` prints them. A folder of one's own may leave them
    out: then its files are taken as they are, and a change of one makes results anew."""

    @model_validator(mode="after")
    def _check_files(self) -> "PretrainedFiles":
        for name in self.files:
            if name.endswith(_PICKLES):
                raise ValueError(
                    f"files: {name}: expected weights as {WEIGHTS}; a pickle can run code and is "
                    "not read. Save the model as safetensors, or name another"
                )
        if (self.hub or self.files) and WEIGHTS not in self.files:
            found = ", ".join(self.files) or "none"
            raise ValueError(f"files: expected {WEIGHTS} among them, found {found}")
        lacking = [name for name, sha256 in self.files.items() if sha256 is None]
        if self.hub and lacking:
            raise ValueError(f"files: {lacking[0]}: expected its SHA-256, found none")
        return self


class PretrainedModel(PretrainedFiles):
    """A translation model of the Hugging Face library that experiments may import."""

    licence: str = Field(min_length=1)
    """What the model may be used for."""

    citation: str = Field(min_length=1)
    """Whom to cite."""

    codes: dict[Language, Annotated[str, Field(min_length=1)]] = {}
    """What it calls the languages of pairs, as in `{de: deu_Latn}`, where it is told them by a code
    that is not their name."""


class _Models(RootModel[dict[CorpusName, PretrainedModel]]):
    model_config = ConfigDict(frozen=True, strict=True)


def load_models(path: Path) -> dict[str, PretrainedModel]:
    """Every model described in the file, by name. Raises UserError for every fault in it."""
    return read_settings(path, _Models).root


class ExperimentModel(ModelSettings):
    """Sizes of the Transformer. A size that is not named comes from the preset."""

    imported: CorpusName | None = None
    """A model of `models.yaml` whose weights and subwords are taken; `bpe` is then left out. The
    sizes must be its own: `scripts/describe_model.py` prints them."""

    fine_tune: bool | None = None
    """Of an imported model. false: `baseline` is the model as it is, and the only training run.
    true: every training run starts from its weights and is trained as `train` says, so `baseline`
    is what runs with masked heads are compared with. Without it: false."""

    @model_validator(mode="after")
    def _check_import(self) -> "ExperimentModel":
        if self.imported is None and self.fine_tune is not None:
            raise ValueError("fine_tune: goes with imported; name a model there, or leave it out")
        return self

    @property
    def as_it_is(self) -> bool:
        """Whether the baseline is an imported model that nothing here has trained."""
        return self.imported is not None and not self.fine_tune

    @property
    def sizes(self) -> ModelSettings:
        """What a script is told of the model: all but where its weights come from."""
        return ModelSettings(**self.model_dump(exclude={"imported", "fine_tune"}))
