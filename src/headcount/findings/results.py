"""The result files that a chapter is made from, and the settings that they were made with."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar

from headcount.base.settings.importance import ImportanceSettings
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.runs import RunSettings
from headcount.base.settings.section import Section
from headcount.findings.run_tables import read_runs

_Read = TypeVar("_Read")


class Results:
    """Files of one experiment by kind, see `INPUTS`, and sections of its settings by name.

    Files of a run lie below `<pair>/<run>/seed<k>/`.
    """

    def __init__(self, files: Mapping[str, list[Path]], settings: Mapping[str, Section]):
        self._files = files
        self.settings = settings
        self.read = cache(self._read)

    def files(self, kind: str) -> list[Path]:
        """Files of one kind, in the order of pairs, runs and seeds; there may be none.

        Raises KeyError for a kind that no exhibit of the chapter declares.
        """
        return self._files[kind]

    def _read(self, reader: Callable[[list[Path]], _Read], kind: str) -> _Read:
        """What a reader makes of all files of one kind; they are read once."""
        return reader(self.files(kind))

    @property
    def runs(self) -> dict[str, RunSettings]:
        """Settings of the training runs, by their names."""
        return self.read(read_runs, "trained_runs")

    @property
    def model(self) -> ModelSettings:
        """Settings of the models."""
        return self.settings["model"]

    @property
    def ranking(self) -> ImportanceSettings:
        """How the importance of heads was measured."""
        return self.settings["importance"]
