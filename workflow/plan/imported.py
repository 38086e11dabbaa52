"""The imported model of an experiment: where it comes from, and what it decides."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from plan.layout import Layout, Wildcards
from plan.raw import Source, own_folder

from headcount.base.errors import UserError
from headcount.base.folders import PRETRAINED_SOURCES, SIDES, TRAINING
from headcount.base.settings.corpora import Corpus
from headcount.base.settings.experiment import Experiment
from headcount.base.settings.flags import as_flags
from headcount.base.settings.pretrained import WEIGHTS, PretrainedFiles, load_models
from headcount.base.settings.section import parse_pair, require

MODELS = "config/models.yaml"
_NEEDED = ("config.json", WEIGHTS)  # of a folder of one's own that is not there


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

    def frozen(self, runs: list[str]) -> list[str]:
        """Return the runs that use the imported model unchanged: either all or none."""
        return runs if self._settings.model.frozen else []

    def trained(self, runs: list[str]) -> list[str]:
        """Return the other training runs."""
        return [] if self._settings.model.frozen else runs

    def segmented(self, pairs: list[str]) -> list[str]:
        """Return the pairs that are cut into its subwords: either all or none."""
        return pairs if self.name else []

    def measuring_flags(self) -> list[str]:
        """Return flags for its dev loss. The lengths of trainings do not matter."""
        return as_flags(self._settings.train, "batch_tokens", "device", "threads")
