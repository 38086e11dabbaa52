"""What the rules ask of an experiment's classifiers: where they come from, what reads them."""

from importlib.util import find_spec
from itertools import product
from pathlib import Path

from layout import Layout, Wildcards
from raw import Source

from headcount.base.errors import EnvironmentFault
from headcount.base.folders import CLASSIFIER_FILES, CLASSIFIER_SOURCES
from headcount.base.settings.experiment import Experiment
from headcount.base.settings.flags import as_flags

LIBRARIES = ("transformers", "accelerate")
_NEEDED = ("config.json", "model.safetensors")  # of a folder of one's own that is not there


class Classifiers:
    """The classifiers of one experiment, all on one corpus."""

    def __init__(self, layout: Layout, settings: Experiment):
        """`layout`: where the experiment's files lie."""
        self._layout = layout
        self._settings = settings.classifiers
        self.seeds = settings.seeds
        self.models = self._settings.models
        self.fine_tuned = [name for name, model in self.models.items() if model.fine_tune]
        self.corpora = [self._settings.corpus] if self.models else []

    def check_library(self) -> None:
        """Raise EnvironmentFault if the library is missing that jobs need."""
        lacking = [name for name in LIBRARIES if self.models and find_spec(name) is None]
        if lacking:
            raise EnvironmentFault(
                f"classifiers need the Hugging Face library, found no {' and no '.join(lacking)}; "
                "pip install -e '.[bert]'"
            )

    def source(self, name: str) -> Source:
        """Where a model comes from, as one job fetches it."""
        model = self.models[name]
        entry = f"{model.hub}@{model.revision}" if model.hub else f"own {model.path}"
        own: list[str] = []
        if model.path:
            globs = (Path(model.path).glob(kind) for kind in CLASSIFIER_SOURCES)
            names = {path.name for paths in globs for path in paths} or _NEEDED
            own = [f"{model.path}/{name}" for name in sorted(names)]
        return Source(f"model.{name}", "fetch_classifier", entry, own)

    def origin_flags(self, w: Wildcards) -> list[str]:
        """Name on the hub and commit, or folder, as flags."""
        model = self.models[w["model"]]
        if model.path:
            return ["--model", model.path]
        return ["--model", model.hub, "--revision", model.revision]

    def start(self, w: Wildcards) -> str:
        """The record of the files that fine-tuning starts from."""
        return self.source(w["run"]).manifest

    def files(self, w: Wildcards) -> list[str]:
        """Files in the folder of the model that is ablated."""
        if w["run"] not in self.fine_tuned:
            return [self.start(w)]
        names = [f"model/{name}" for name in CLASSIFIER_FILES]
        return self._layout.beside("train", w, w["run"], *names)

    def label_flags(self, w: Wildcards) -> list[str]:
        """Names of the labels of the model that is ablated, if given, as a flag."""
        labels = self.models[w["run"]].labels
        return ["--labels", *labels] if labels else []

    @property
    def parting_flags(self) -> list[str]:
        """How labelled pairs are parted, as flags."""
        return as_flags(self._settings, "dev_pairs", "train_pairs")

    def folders(self, phase: str) -> list[tuple[str, str]]:
        """(corpus, folder) of what a phase has of each model: models, then seeds."""
        each = product(self.corpora, self.models, self.seeds)
        return [(names[0], self._layout.run(phase, *names)) for names in each]
