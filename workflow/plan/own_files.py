"""Files and models that an experiment gets from elsewhere, checked before any job."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from engines.records import own_content
from plan.layout import Layout, Source, Wildcards

from headcount.base.errors import UserError
from headcount.base.folders import CLASSIFIER_FILES
from headcount.base.settings.corpora import Corpus
from headcount.base.settings.experiment import Experiment
from headcount.base.settings.pretrained import load_models
from headcount.base.settings.section import check_own_file, parse_pair, require


class OwnFiles:
    """Files of one's own that one plan needs."""

    def __init__(self, dry: bool):
        """`dry`: no job will run, so that a missing file is only reported."""
        self._dry = dry
        self._lacking: set[str] = set()  # manifests of what is planned without them

    def check(self, source: Source, outputs: Sequence[str]) -> None:
        """Raise UserError for a missing file that has no copy, and for one with a wrong SHA-256.

        If no job will run, or all `outputs` that depend on the file are here, only report it: who
        pulled them may have no right to the text itself.
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
    """Make a copy older than a file that was put into the place of what it is a copy of."""
    # Snakemake compares contents of newer files only. `mv` and `cp -p` keep all times but ctime.
    made = os.stat(source.manifest)
    own = [os.stat(path) for path in source.own if os.path.exists(path)]
    put = [file.st_mtime_ns for file in own if file.st_ctime_ns > made.st_mtime_ns]
    if put and min(put) <= made.st_mtime_ns:
        os.utime(source.manifest, ns=(made.st_atime_ns, min(put) - 10**9))


MODELS = "config/models.yaml"


class Classifiers:
    """The classifiers of one experiment, all on one corpus."""

    def __init__(self, layout: Layout, settings: Experiment):
        """`layout`: the folders of the experiment."""
        self._layout = layout
        self._settings = settings.classifiers
        self.models = self._settings.models
        self.fine_tuned = [name for name, model in self.models.items() if model.fine_tune]
        self.corpora = [self._settings.corpus] if self.models else []
        file = f"config/{layout.experiment}.yaml"
        models = {f"model.{name}": model for name, model in self.models.items()}
        self.sources = {k: Source.of_model(k, model, file) for k, model in models.items()}
        self.manifests = [source.manifest for source in self.sources.values()]

    def files(self, w: Wildcards) -> list[str]:
        """Return the files in the folder of the model that is ablated."""
        if w["run"] not in self.fine_tuned:
            return [self.sources[f"model.{w['run']}"].manifest]
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
        self.sources: dict[str, Source] = {}
        self.codes: dict[str, str] = {}
        if self.name:
            models = load_models(Path(MODELS))
            lack = f"model.imported: no model {self.name!r} in {MODELS}"
            require(self.name, models, lack)
            self._model, name = models[self.name], f"pretrained.{self.name}"
            self.sources[name] = Source.of_model(name, self._model, MODELS)
            self.codes = self._model.codes
        self.manifests = [source.manifest for source in self.sources.values()]
        for pair in map(parse_pair, settings.pairs if self.name else []):
            if pair.corpus in corpora and corpora[pair.corpus].pretokenised:
                raise UserError(
                    f"pairs: {pair}: expected plain text for the imported model {self.name}, found "
                    "a corpus that is tokenised already; name another"
                )

    def check_files(self) -> None:
        """Raise UserError for a tokenizer's file without checksum, which the copy would lack."""
        if not self.name or not self._model.path or not self._model.files:
            return
        from headcount_hf.pretrained.families import TOKENIZER  # without torch

        here = [file for file in TOKENIZER if Path(self._model.path, file).exists()]
        if lacking := [file for file in here if file not in self._model.files]:
            raise UserError(
                f"{MODELS}: {self.name}: files: expected {lacking[0]}, which is in "
                f"{self._model.path}, found none; scripts/describe_model.py prints all files with "
                "their SHA-256"
            )
