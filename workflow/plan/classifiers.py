"""Classifiers of an experiment: where they come from, and the files of their jobs."""

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec

from plan.layout import Layout, Wildcards
from plan.raw import Source, own_folder

from headcount.base.errors import EnvironmentFault
from headcount.base.folders import CLASSIFIER_FILES, CLASSIFIER_SOURCES
from headcount.base.settings.experiment import Experiment
from headcount.base.settings.flags import as_flags

LIBRARIES = ("transformers", "accelerate")
_NEEDED = ("config.json", "model.safetensors")  # of a folder of one's own that is not there


class Classifiers:
    """The classifiers of one experiment, all on one corpus."""

    def __init__(self, layout: Layout, settings: Experiment):
        """`layout`: the folders of the experiment."""
        self._layout = layout
        self._settings = settings.classifiers
        self.models = self._settings.models
        self.fine_tuned = [name for name, model in self.models.items() if model.fine_tune]
        self.corpora = [self._settings.corpus] if self.models else []

    def check_library(self) -> None:
        """Raise EnvironmentFault if a library is missing that jobs need."""
        lacking = [name for name in LIBRARIES if self.models and find_spec(name) is None]
        if lacking:
            raise EnvironmentFault(
                f"classifiers need the Hugging Face library, found no {' and no '.join(lacking)}; "
                "pip install -e '.[bert]'"
            )

    def source(self, name: str) -> Source:
        """Return where a model comes from."""
        model = self.models[name]
        own = own_folder(model.path, CLASSIFIER_SOURCES, _NEEDED) if model.path else []
        entry = f"{model.hub}@{model.revision}" if model.hub else f"own {model.path}"
        settings = f"config/{self._layout.experiment}.yaml"
        return Source(f"model.{name}", "fetch_classifier", entry, own, settings=settings)

    def sources(self) -> Iterator[tuple[Source, list[str]]]:
        """Yield the source of every model, with files that depend on it."""
        folders = self.folders("masking")
        outputs = [f"{folder}/classifier_ablation.csv" for _, folder in folders]
        for name in self.models:
            yield self.source(name), outputs

    @property
    def manifests(self) -> list[str]:
        """The records of the files of all models."""
        return [self.source(name).manifest for name in self.models]

    def origin_flags(self, w: Wildcards) -> list[str]:
        """Return name on the hub and commit, or folder, as flags."""
        model = self.models[w["model"]]
        if model.path:
            return ["--model", model.path]
        return ["--model", model.hub, "--revision", model.revision]

    def start(self, w: Wildcards) -> str:
        """Return the record of the files that fine-tuning starts from."""
        return self.source(w["run"]).manifest

    def files(self, w: Wildcards) -> list[str]:
        """Return the files in the folder of the model that is ablated."""
        if w["run"] not in self.fine_tuned:
            return [self.start(w)]
        names = [f"model/{name}" for name in CLASSIFIER_FILES]
        return self._layout.beside("train", w, w["run"], *names)

    def label_flags(self, w: Wildcards) -> list[str]:
        """Return the names of the labels of the model that is ablated, if given, as a flag."""
        labels = self.models[w["run"]].labels
        return ["--labels", *labels] if labels else []

    @property
    def parting_flags(self) -> list[str]:
        """Flags on how labelled pairs are parted."""
        return as_flags(self._settings, "dev_pairs", "train_pairs")

    def folders(self, phase: str) -> list[tuple[str, str]]:
        """Return corpus and folder of a phase's files of every model, by model and seed."""
        return replace(self._layout, pairs=self.corpora).folders(phase, self.models)
