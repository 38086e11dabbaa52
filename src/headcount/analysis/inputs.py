"""Kinds of files that tables and figures read: their owners, folders and names."""

from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from headcount.analysis import read_beside
from headcount.base import folders
from headcount.base.settings.section import Section


class _File(Section):
    """The content of `inputs.yaml`, which explains it."""

    columns: dict[str, str]
    owners: dict[str, str]
    groups: dict[str, str]
    inputs: dict[str, dict[str, str]]


_FILE = read_beside(__file__, _File)
OWNERS = _FILE.owners  # descriptions of the pairs or runs that have files
GROUPS = {name: tuple(kinds.split()) for name, kinds in _FILE.groups.items()}
BLEU = "bleu"
"""The metric of tables and figures that are made for other metrics, too."""
OF_TRAINING = ("curves", "masks", "slopes")  # an imported model that is not trained has none


LATER = ("cost", "report")
"""Rules whose jobs come after the table of cost: their benchmarks are from an earlier run."""


class Input(NamedTuple):
    """One kind of files, with a file for every owner, test set and so on (`inputs.yaml`)."""

    owner: str
    folder: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    rows: str = ""
    metric: str = ""
    by_metric: str = ""

    def of(self, metric: str) -> "Input":
        """Return the files that another metric has in place of BLEU's; none if it has none."""
        of_metrics = self.metric or self.by_metric or any("<metric>" in n for n in self.names)
        if metric == BLEU or not of_metrics:
            return self
        names = tuple(self.by_metric.replace("<metric>", metric).split())
        columns = tuple(metric if name == self.metric else name for name in self.columns)
        return self._replace(names=names, columns=columns, metric=self.metric and metric)

    def describe(self) -> str:
        """Return a description for the help of a flag."""
        return f"{', '.join(self.names)} of {OWNERS[self.owner]}"


def _spelt(text: str, lists: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the words of a text. A word in capitals stands for the words of a list."""
    given = (lists.get(word, "") if word.isupper() else (word,) for word in text.split())
    words = (_spelt(value, lists) if isinstance(value, str) else value for value in given)
    return tuple(chain.from_iterable(words))


def _input(of: str, files: str, columns: str = "", **others: str) -> Input:
    names, needed = _spelt(files, vars(folders)), _spelt(columns, _FILE.columns)
    return Input(of, others.pop("in"), names, needed, **others)


INPUTS = {name: _input(**given) for name, given in _FILE.inputs.items()}


def place_of(path: Path) -> tuple | None:
    """Return folder and name of a file that may decide claims, its experiment, and its run."""
    folders, seed = path.parts[:-1], path.parent.name.removeprefix("seed")
    if seed.isdecimal() and len(folders) > 4 and path.suffix in (".csv", ".json"):
        return f"{folders[-4]}/{path.name}", folders[-5], *folders[-3:-1], int(seed)
    is_data = path.suffix == ".csv" and path.stem not in ("claims", "phenomena")
    if path.parent.name in ("tables", "figures") and is_data:
        return f"{folders[-1]}/{path.name}", folders[-2]
    return None


def files_in(kind: str, given: Path) -> list[Path]:
    """Return the file itself, or the files in a folder: benchmarks, or what may decide claims."""
    if kind == "benchmarks" and not given.is_file():  # there is no folder before the first job
        return sorted(file for file in given.glob("*/*.tsv") if file.parent.name not in LATER)
    return sorted(filter(place_of, given.rglob("*.*"))) if given.is_dir() else [given]


def without_groups(kinds: Iterable[str]) -> tuple[str, ...]:
    """Return these kinds, with the kinds of a group in place of its name, or raise ValueError."""
    members = tuple(kind for name in kinds for kind in GROUPS.get(name, (name,)))
    if unknown := set(members).difference(INPUTS):
        raise ValueError(f"expected kinds of INPUTS or names of GROUPS, found {sorted(unknown)}")
    return members


def file_flag(kind: str) -> str:
    """Return the flag that names files of one kind on a command line."""
    return f"--{kind.replace('_', '-')}"
