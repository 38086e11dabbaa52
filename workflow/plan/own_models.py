"""Models that an experiment gets from elsewhere: classifiers, and one for translation."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from plan.layout import Layout, Source, Wildcards, own_folder

from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.folders import (
    CLASSIFIER_FILES,
    CLASSIFIER_SOURCES,
    PRETRAINED_SOURCES,
    SIDES,
    TRAINING,
)
from headcount.base.settings.experiment import Experiment
from headcount.base.settings.flags import as_flags
from headcount.base.settings.names import parse_pair, require
from headcount.base.settings.pretrained import WEIGHTS, PretrainedFiles, load_models
from headcount.base.settings.text.corpora import Corpus

MODELS = "config/models.yaml"
LIBRARIES = ("transformers", "accelerate")
_NEEDED = ("config.json", WEIGHTS)  # of a folder of one's own that is not there


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


class Imported:
    """The imported model of one experiment, if it has one."""

    def __init__(self, settings: Experiment, corpora: Mapping[str, Corpus]):
        """Raise UserError for a model that models.yaml does not have, and for tokenised text."""
        self._settings = settings
        self.name = settings.model.imported
        self.names = [self.name] if self.name else []
        self._models = load_models(Path(MODELS)) if self.name else {}
        if self.name:
            lack = f"model.imported: no model {self.name!r} in {MODELS}"
            require(self.name, self._models, lack)
        for pair in map(parse_pair, self.segmented(settings.pairs)):
            if pair.corpus in corpora and corpora[pair.corpus].pretokenised:
                raise UserError(
                    f"pairs: {pair}: expected plain text for the imported model {self.name}, found "
                    "a corpus that is tokenised already; name another"
                )

    def check_files(self) -> None:
        """Raise UserError for a tokenizer's file in the model's own folder that has no checksum.

        The copy would lack it, and text would be cut in another way.
        """
        for name in self.names:
            from headcount_hf.pretrained.families import TOKENIZER, settings_files  # without torch

            model = self._models[name]
            folder = Path(model.path or "")
            here = [*settings_files(folder), *folder.glob(TOKENIZER)] if model.path else []
            lacking = [path for path in here if model.files and path.name not in model.files]
            if lacking:
                raise UserError(
                    f"{MODELS}: {name}: files: expected {lacking[0].name}, which is in {folder}, "
                    "found none; scripts/describe_model.py prints all files with their SHA-256"
                )

    def source(self, name: str) -> Source:
        """Return where a model comes from."""
        model = self._models[name]
        own = [f"{model.path}/{file}" for file in sorted(model.files)] if model.path else []
        if model.path and not own:
            own = own_folder(model.path, PRETRAINED_SOURCES, _NEEDED)
        entry = model.model_dump_json(include={*PretrainedFiles.model_fields})
        pinned = {f"{model.path}/{file}": s for file, s in model.files.items() if s and own}
        return Source(f"pretrained.{name}", "fetch_pretrained", entry, own, pinned, MODELS)

    def sources(self, layout: Layout) -> Iterator[tuple[Source, list[str]]]:
        """Yield the source of the model, with files that depend on it."""
        for name in self.names:
            yield self.source(name), [f"{layout.bpe(pair)}/{TRAINING[-1]}" for pair in layout.pairs]

    @property
    def manifests(self) -> list[str]:
        """The record of its files, which stands for them."""
        return [self.source(name).manifest for name in self.names]

    def entry_flags(self, w: Wildcards) -> list[str]:
        """Return its origin and files, as a flag."""
        return ["--entry", self.source(w["pretrained"]).entry]

    def code_flags(self, w: Wildcards) -> list[str]:
        """Return its names of a pair's languages, as flags, where it has some."""
        sides = zip(SIDES, parse_pair(w["pair"])[1:], strict=True)
        codes = self._models[self.name].codes
        known = [(side, codes[language]) for side, language in sides if language in codes]
        return [word for side, code in known for word in (f"--{side}-code", code)]

    def as_it_is(self, runs: list[str]) -> list[str]:
        """Return the runs that use the imported model unchanged: either all or none."""
        return runs if self._settings.model.as_it_is else []

    def trained(self, runs: list[str]) -> list[str]:
        """Return the other training runs."""
        return [] if self._settings.model.as_it_is else runs

    def segmented(self, pairs: list[str]) -> list[str]:
        """Return the pairs that are cut into its subwords: either all or none."""
        return pairs if self.name else []

    def measuring_flags(self) -> list[str]:
        """Return flags for its dev loss. The lengths of trainings do not matter."""
        return as_flags(self._settings.train, "batch_tokens", "device", "threads")
