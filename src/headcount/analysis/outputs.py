"""Declarations of all tables and figures: `tables/<module>.yaml` beside the module's functions.

Nothing here imports pandas or matplotlib, so that a plan need not wait for them.
"""

import re
from collections.abc import Collection, Iterator
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any, Literal

from pydantic import model_validator

from headcount.analysis.inputs import without_groups
from headcount.base.settings.ablation import AblationSettings, RerankSettings
from headcount.base.settings.importance import ImportanceSettings, LrpSettings
from headcount.base.settings.pretrained import ExperimentModel
from headcount.base.settings.reader import read_settings
from headcount.base.settings.roles import RolesSettings
from headcount.base.settings.section import Section
from headcount.base.settings.train import GatesSettings

FORMS = {
    "table": ("tables/", ("csv", "md", "tex", "json")),
    "figure": ("figures/", ("svg", "pdf", "png", "csv", "json")),
    "numbers": ("", ("json",)),
    "page": ("", ("html",)),
}
"""Folder and file endings of every form of output."""

SHOWN = ("table", "figure")
"""Forms that the report shows."""

_TABLES = Path(__file__).with_name("tables")
_PACKAGE = "headcount.analysis.tables"
Value = bool | int | float | str | None
Cell = dict[str, Value | list[str]]


class Draw(Section):
    """How the renderer draws a figure; see `figures/render.py`."""

    frame: str = ""
    """A function of the output's module that makes the frame to draw from the output's `frame`."""

    special: str = ""
    """A function of `figures/special.py` that draws the whole figure."""

    options: dict[str, Any] = {}
    """Arguments of these functions."""

    panels: list[str] = []
    """Columns whose values make a panel each."""

    across: str | list[str] = ""
    """A column whose values stand side by side, in a row for each panel; or such columns, whose
    values layers call `_value`."""

    abreast: int = 0
    """Most panels in a row; 0 for the renderer's choice."""

    title: str = ""
    """Title of a panel, with names of columns in braces; {panel} is the title without this."""

    style: str = ""
    """The column that chooses colour, line and marker, and names the legend's entries."""

    where: str = ""
    """A query that chooses rows of the frame."""

    ordered: bool = False
    """Whether styles are ordered values: their colours go from dark to light."""

    legend: str = "{}"
    """Text of the legend for a value of the style column that is not in `labels`."""

    labels: dict[str, str] = {}
    """Text for values of the style, panel and axis columns."""

    colours: dict[str, str] = {}
    """Colours of styles, by value."""

    layers: list[dict[str, Any]] = []
    """Marks, drawn in this order on every panel."""

    x: dict[str, Any] = {}
    """The horizontal axis: label, scale, min, max, integer, ticks, reverse."""

    y: dict[str, Any] = {}
    """The vertical axis."""

    colour: dict[str, Any] = {}
    """The colour bar of a heat map: label, scale, centre, map."""

    size: list[float] = []
    """Width and height of a panel, in inches."""

    share_y: bool = False
    """Whether all panels have one vertical axis."""

    split_styles: bool = True
    """Whether styles are parted among several panels where one has too many."""


class Output(Section):
    """One table, one figure, a file of numbers for `dvc metrics`, or a page."""

    name: str
    """Name of its files; unique within its form."""

    module: str
    """Module of the function that makes its data."""

    declared: str = ""
    """Module beside the file of its declaration, if that is another one."""

    chapter: str
    """The rule that makes it."""

    form: Literal["table", "figure", "numbers", "page"]
    title: str
    """A few words; the caption says the rest."""

    function: str
    """Function that returns its data; see `frames.Data.call` for the function's parameters."""

    arguments: dict[str, Value | list[str]] = {}
    """Further arguments of the function."""

    needs: list[str] = []
    """Kinds of `INPUTS` or names of `GROUPS`. Without any file of one, the output is not made."""

    uses: list[str] = []
    """Kinds of which there may be no file."""

    question: str = ""
    """Section of the report; the chapter's unless given."""

    beside: str = ""
    """The table after which the report shows a figure."""

    allow_empty: bool = False
    """Whether a table may have no row."""

    csv: dict[str, str] = {}
    """New names of columns in the CSV."""

    csv_columns: list[str] = []
    """Columns that the CSV has, in this order; all unless given."""

    caption: str = ""
    """At most two sentences, with names of functions of `captions.py` in braces."""

    notes: list[str] = []
    """Names of notes of `captions.py` and `captions.yaml`, or sentences."""

    warnings: list[str] = []
    """Names of functions of `captions.py` that return sentences."""

    rows: list[str] = []
    """Readable table: a row for every combination of these columns; the whole frame if empty."""

    where: str = ""
    """Readable table: a query that chooses rows of the frame."""

    columns: dict[str, Cell] = {}
    """Readable table: the format of every further column, by its heading; see `cells.py`."""

    draw: Draw = Draw()
    """Figure: how it is drawn."""

    @model_validator(mode="after")
    def _check_kinds(self) -> "Output":
        without_groups([*self.needs, *self.uses])
        return self

    @cached_property
    def required(self) -> tuple[str, ...]:
        """Kinds of `needs`, groups replaced by their kinds."""
        return without_groups(self.needs)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of `needs` and `uses`, groups replaced by their kinds."""
        return without_groups([*self.needs, *self.uses])

    @property
    def files(self) -> list[str]:
        """Files below the folder of an experiment's results; a `.json` is the last."""
        folder, ends = FORMS[self.form]
        return [f"{folder}{self.name}.{end}" for end in ends]

    @property
    def anchor(self) -> str:
        """Name within a page; a table and a figure may share a name."""
        return f"{self.form}-{self.name}"


class Chapter(Section):
    """The outputs that one rule makes."""

    name: str
    """Name of its rule."""

    title: str
    """Heading in the list of all outputs."""

    question: str
    """Section of the report for outputs that name no other."""

    sections: dict[str, type[Section]] = {}
    """Sections of the settings that its outputs take; no two share a flag."""

    uses: tuple[str, ...] = ("trained_runs",)
    """Kinds of `INPUTS` that every output may read."""

    runs: str = "runs"
    """Which of `OWNERS` its training runs are."""

    outputs: tuple[Output, ...] = ()

    @property
    def kinds(self) -> list[str]:
        """Kinds of `INPUTS` that its outputs read, each once."""
        kinds = [kind for output in self.outputs for kind in output.kinds]
        return list(dict.fromkeys([*self.uses, *kinds]))

    @property
    def modules(self) -> list[str]:
        """Modules of its outputs; `fingerprint.code` follows imports and reads declarations."""
        modules = (name for item in self.outputs for name in (item.module, item.declared) if name)
        return list(dict.fromkeys(modules))

    def made_from(self, kinds: Collection[str]) -> "Chapter":
        """Return this chapter with the outputs whose needs are among these kinds of files."""
        able = tuple(output for output in self.outputs if set(output.required) <= set(kinds))
        return self.model_copy(update={"outputs": able})


CHAPTERS = (
    Chapter(name="general", title="Corpora, scores and training", question="training", uses=()),
    Chapter(
        name="headmask",
        title="HeadMask: training with masked heads",
        question="headmask",
        sections={"model": ExperimentModel, "importance": ImportanceSettings},
        runs="same_heads",
    ),
    Chapter(
        name="voita_roles",
        title="Voita et al.: the roles of heads",
        question="functions",
        sections={"model": ExperimentModel, "roles": RolesSettings, "lrp": LrpSettings},
    ),
    Chapter(
        name="voita_pruning",
        title="Voita et al.: pruning heads by gates",
        question="gates",
        sections={"model": ExperimentModel, "gates": GatesSettings},
    ),
    Chapter(
        name="michel",
        title="Sixteen heads: heads removed from trained models",
        question="removal",
        sections={
            "model": ExperimentModel,
            "ablation": AblationSettings,
            "importance": RerankSettings,
        },
    ),
    Chapter(
        name="atlas",
        title="Head atlas",
        question="functions",
        sections={
            "model": ExperimentModel,
            "importance": ImportanceSettings,
            "roles": RolesSettings,
        },
    ),
    Chapter(
        name="michel_classifiers",
        title="Sixteen heads: heads removed from classifiers",
        question="removal",
        uses=(),
    ),
    Chapter(name="claims", title="Claims of the papers", question="claims", uses=()),
    Chapter(name="cost", title="Time and memory of jobs", question="speed", uses=()),
)


class _File(Section):
    """One file of declarations, with defaults of its entries.

    An entry with `like` is completed from the entry of that name.
    """

    chapter: str
    defaults: dict[str, Any] = {}
    outputs: dict[str, dict[str, Any]]


class _Outputs(Section):
    """The outputs of one file, checked."""

    outputs: list[Output]


_loaded: list[Chapter] = []


def chapters() -> tuple[Chapter, ...]:
    """Return all chapters with their outputs: tables first, those of a paper before others."""
    if not _loaded:
        outputs = sorted(_declared(), key=_order)
        for chapter in CHAPTERS:
            own = tuple(output for output in outputs if output.chapter == chapter.name)
            _loaded.append(chapter.model_copy(update={"outputs": own}))
    return tuple(_loaded)


def _declared() -> Iterator[Output]:
    questions = {chapter.name: chapter.question for chapter in CHAPTERS}
    files = {path: read_settings(path, _File) for path in sorted(_TABLES.glob("*.yaml"))}
    entries: dict[str, dict[str, Any]] = {}
    for path, file in files.items():
        for key, entry in file.outputs.items():
            module = f"{_PACKAGE}.{path.stem}"
            entries[key] = {"module": module, "declared": module} | file.defaults | entry
    for file in files.values():
        for key in file.outputs:
            given = {"question": questions[file.chapter]} | _completed(entries[key], entries)
            own = {"name": key.partition(" ")[0], "chapter": file.chapter}
            yield Output.model_validate(given | own)


def _completed(entry: dict[str, Any], entries: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return an entry, completed from the entry that it is `like`: mappings key by key."""
    if "like" not in entry:
        return entry
    base = _completed(entries[entry["like"]], entries)
    own = {key: value for key, value in entry.items() if key not in ("like", "module")}
    mappings = {key: base.get(key, {}) | value for key, value in own.items() if type(value) is dict}
    return base | own | mappings


def _order(output: Output) -> tuple:
    """Return the place in a chapter: by number in the paper, then by name."""
    number = re.search(r"_(?:table|fig)(\d+)$", output.name)
    return list(FORMS).index(output.form), int(number[1]) if number else inf, output.name
