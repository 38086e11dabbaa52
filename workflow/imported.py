"""What the rules ask of an experiment's imported model: where it comes from, what it takes over."""

from collections.abc import Mapping
from pathlib import Path

from layout import Layout, Wildcards
from raw import Source

from headcount.base.errors import UserError
from headcount.base.folders import PRETRAINED_SOURCES, SIDES, TRAINING
from headcount.base.settings.corpora import Corpus
from headcount.base.settings.experiment import Experiment
from headcount.base.settings.flags import as_flags
from headcount.base.settings.names import Pair, parse_pair, require
from headcount.base.settings.pretrained import WEIGHTS, PretrainedFiles, load_models

MODELS = "config/models.yaml"
_NEEDED = ("config.json", WEIGHTS)  # of a folder of one's own that is not there


class Imported:
    """The imported model of one experiment; nothing, where its models start at random."""

    def __init__(self, settings: Experiment, corpora: Mapping[str, Corpus]):
        """Raises UserError for a model that models.yaml does not have, and for tokenised text."""
        self._settings = settings
        self.name = settings.model.imported
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
            self._check_languages(pair)

    def _check_languages(self, pair: Pair) -> None:
        """Raise UserError where the model's folder, if it is there, is of other languages."""
        from headcount_hf.pretrained.families import check_languages  # of imported models alone

        model = self._models[self.name]
        folder = Path(model.path or Path(self.source(self.name).manifest).parent)
        check_languages(folder, pair[1:], [model.codes.get(each) for each in pair[1:]])

    @property
    def names(self) -> list[str]:
        """Its name, or none."""
        return [self.name] if self.name else []

    def source(self, name: str) -> Source:
        """Where a model comes from, as one job fetches it."""
        model = self._models[name]
        entry = model.model_dump_json(include={*PretrainedFiles.model_fields})
        own: list[str] = []
        if model.path:
            globs = (Path(model.path).glob(kind) for kind in PRETRAINED_SOURCES)
            files = model.files or {path.name for paths in globs for path in paths} or _NEEDED
            own = [f"{model.path}/{file}" for file in sorted(files)]
        pinned = {f"{model.path}/{file}": s for file, s in model.files.items() if s and own}
        return Source(f"pretrained.{name}", "fetch_pretrained", entry, own, pinned)

    def entry_flags(self, w: Wildcards) -> list[str]:
        """Its origin and files, as a flag."""
        return ["--entry", self.source(w["pretrained"]).entry]

    def code_flags(self, w: Wildcards) -> list[str]:
        """What it calls the languages of a pair, as flags, where that is told."""
        sides = zip(SIDES, parse_pair(w["pair"])[1:], strict=True)
        codes = self._models[self.name].codes
        known = [(side, codes[language]) for side, language in sides if language in codes]
        return [word for side, code in known for word in (f"--{side}-code", code)]

    def made(self, layout: Layout) -> list[str]:
        """Files that are made from it, the last of each pair's segmentation."""
        return [f"{layout.bpe(pair)}/{TRAINING[-1]}" for pair in self.segmented(layout.pairs)]

    def check_sizes(self) -> None:
        """Raise UserError for other sizes than those in the model's folder, if that is here.

        So for a file of its own folder that says how text is cut and is not among pinned `files`.
        """
        for name in self.names:
            from headcount_hf.pretrained.families import (  # without torch
                CONFIG,
                TOKENIZER,
                check_sizes,
                settings_files,
            )

            model = self._models[name]
            folder = Path(model.path or Path(self.source(name).manifest).parent)
            if (folder / CONFIG).exists():
                check_sizes(folder, self._settings.model.sizes)
            here = [*settings_files(folder), *folder.glob(TOKENIZER)] if model.path else []
            lacking = [path for path in here if model.files and path.name not in model.files]
            if lacking:
                raise UserError(
                    f"{MODELS}: {name}: files: expected {lacking[0].name}, which is in {folder}, "
                    "found none; scripts/describe_model.py prints all files with their SHA-256"
                )

    @property
    def manifests(self) -> list[str]:
        """The record of its files, which stands for them."""
        return [self.source(name).manifest for name in self.names]

    def as_it_is(self, runs: list[str]) -> list[str]:
        """Those of the training runs that are the imported model itself: all or none."""
        return runs if self._settings.model.as_it_is else []

    def trained(self, runs: list[str]) -> list[str]:
        """The other training runs."""
        return [] if self._settings.model.as_it_is else runs

    def segmented(self, pairs: list[str]) -> list[str]:
        """Pairs that are cut into its subwords: all or none."""
        return pairs if self.name else []

    def measuring_flags(self) -> list[str]:
        """What its dev loss is measured with, as flags; the lengths of trainings do not matter."""
        return as_flags(self._settings.train, "batch_tokens", "device", "threads")
