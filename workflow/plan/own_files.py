"""Files and models that an experiment gets from elsewhere, checked before any job."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from engines.records import own_content
from plan.layout import Layout, Source, Wildcards, own_folder

from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.folders import (
    CLASSIFIER_FILES,
    PRETRAINED_SOURCES,
    SIDES,
    TRAINING,
)
from headcount.base.settings.corpora import Corpus
from headcount.base.settings.experiment import Experiment
from headcount.base.settings.pretrained import WEIGHTS, PretrainedFiles, load_models
from headcount.base.settings.section import check_own_file, parse_pair, require


class OwnFiles:
    """Files of one's own that one plan needs."""

    def __init__(self, dry: bool):
        """`dry`: no job will run, so that a missing file is only reported."""
        self._dry = dry
        self._lacking: set[str] = set()  # manifests of what is planned without them

    def check(self, source: Source, outputs: Sequence[str]) -> None:
        """Raise UserError for a missing file that has no copy, and for one with a wrong SHA-256.

        If all `outputs` that depend on the file are here, or no job will run, report it and go on:
        who pulled them may have no right to the text itself. Snakemake then leaves them as they
        are.
        """
        for path, expected in source.pinned.items():
            if os.path.isfile(path) and (content := own_content(path)) != expected:
                raise UserError(
                    f"{path}: expected SHA-256 {expected}, as {source.settings} has it, found "
                    f"{content}: the file has changed. Put the earlier one back, or write the new "
                    f"checksum into {source.settings}; then all that depends on it is made anew"
                )
        if os.path.exists(source.manifest):
            _date_back(source)
            return
        try:
            for path in source.own:
                check_own_file(path, source.settings)
        except UserError as fault:
            if all(map(os.path.exists, outputs)):
                rest = f"until then {outputs[0]} and the like stay as they are"
            elif self._dry:
                rest = "without it there is only this plan"
                self._lacking.add(source.manifest)
            else:
                raise
            print(f"note: {fault}; {rest}", file=sys.stderr)

    def of(self, source: Source) -> list[str]:
        """Return the files that `source` is a copy of, except those that a dry plan lacks."""
        lacking = source.manifest in self._lacking
        return [path for path in source.own if os.path.exists(path) or not lacking]


def _date_back(source: Source) -> None:
    """Make a copy older than a file that was put into the place of what it is a copy of.

    Snakemake compares contents only of files that are newer, and to move, unpack or `cp -p` a file
    keeps its time. The time of the last change of its inode cannot be kept.
    """
    made = os.stat(source.manifest)
    own = [os.stat(path) for path in source.own if os.path.exists(path)]
    put = [file.st_mtime_ns for file in own if file.st_ctime_ns > made.st_mtime_ns]
    if put and min(put) <= made.st_mtime_ns:
        os.utime(source.manifest, ns=(made.st_atime_ns, min(put) - 10**9))


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
        own = own_folder(model.path, PRETRAINED_SOURCES, _NEEDED) if model.path else []
        entry = f"{model.hub}@{model.revision}" if model.hub else f"own {model.path}"
        settings = f"config/{self._layout.experiment}.yaml"
        return Source(f"model.{name}", "fetch_classifier", entry, own, settings=settings)

    def sources(self) -> Iterator[tuple[Source, list[str]]]:
        """Yield the source of every model, with files that depend on it."""
        outputs = [f"{folder}/classifier_ablation.csv" for _, folder in self.folders("masking")]
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

    def files(self, w: Wildcards) -> list[str]:
        """Return the files in the folder of the model that is ablated."""
        if w["run"] not in self.fine_tuned:
            return [self.source(w["run"]).manifest]
        names = [f"model/{name}" for name in CLASSIFIER_FILES]
        return self._layout.beside("train", w, w["run"], *names)

    def label_flags(self, w: Wildcards) -> list[str]:
        """Return the names of the labels of the model that is ablated, if given, as a flag."""
        labels = self.models[w["run"]].labels
        return ["--labels", *labels] if labels else []

    def folders(self, phase: str) -> list[tuple[str, str]]:
        """Return corpus and folder of a phase's files of every model, by model and seed."""
        return replace(self._layout, pairs=self.corpora).folders(phase, self.models)


class Imported:
    """The imported model of one experiment, if it has one."""

    def __init__(self, settings: Experiment, corpora: Mapping[str, Corpus]):
        """Raise UserError for a model that models.yaml does not have, and for tokenised text."""
        self.name = settings.model.imported
        self.names = [self.name] if self.name else []
        self._models = load_models(Path(MODELS)) if self.name else {}
        if self.name:
            lack = f"model.imported: no model {self.name!r} in {MODELS}"
            require(self.name, self._models, lack)
        for pair in map(parse_pair, settings.pairs if self.name else []):
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
            from headcount_hf.pretrained.families import TOKENIZER  # without torch

            model = self._models[name]
            folder = Path(model.path or "")
            here = [file for file in TOKENIZER if model.path and (folder / file).exists()]
            lacking = [file for file in here if model.files and file not in model.files]
            if lacking:
                raise UserError(
                    f"{MODELS}: {name}: files: expected {lacking[0]}, which is in {folder}, "
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

    def code_flags(self, w: Wildcards) -> list[str]:
        """Return its names of a pair's languages, as flags, where it has some."""
        sides = zip(SIDES, parse_pair(w["pair"])[1:], strict=True)
        codes = self._models[self.name].codes
        known = [(side, codes[language]) for side, language in sides if language in codes]
        return [word for side, code in known for word in (f"--{side}-code", code)]
