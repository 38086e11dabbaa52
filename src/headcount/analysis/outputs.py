"""Declarations of all tables and figures: `tables/<module>.yaml` beside the module's functions.

Nothing here imports pandas or matplotlib, so that a plan need not wait for them.
"""

import re
from collections.abc import Collection, Iterator
from functools import cache, cached_property
from math import inf
from pathlib import Path
from typing import Any, Literal

from pydantic import model_validator

from headcount.analysis import read_beside
from headcount.analysis.inputs import BLEU, without_groups
from headcount.base.settings.decode import SavingsSettings
from headcount.base.settings.heads import (
    AblationSettings,
    ImportanceSettings,
    LrpSettings,
    RerankSettings,
    RolesSettings,
)
from headcount.base.settings.pretrained import ExperimentModel
from headcount.base.settings.reader import read_settings
from headcount.base.settings.section import Section
from headcount.base.settings.train import GatesSettings

# Folder and file endings of every form of output.
FORMS = {
    "table": ("tables/", ("csv", "md", "tex", "json")),
    "figure": ("figures/", ("svg", "pdf", "png", "csv", "json")),
    "numbers": ("", ("json",)),
    "page": ("", ("html",)),
}

SHOWN = ("table", "figure")  # forms that the report shows
_TABLES = Path(__file__).with_name("tables")
_PACKAGE = "headcount.analysis.tables"
Value = bool | int | float | str | None
Cell = dict[str, Value | list[str]]


class Draw(Section):
    """Options of a figure for `figures/render.py`."""

    frame: str = ""  # a function of the output's module: from the output's frame to the one drawn
    special: str = ""  # a function of `figures/special.py` that draws the whole figure
    options: dict[str, Any] = {}  # arguments of these functions
    panels: list[str] = []  # columns whose values make a panel each
    across: str = ""  # a column whose values stand side by side, in a row for each panel
    abreast: int = 0  # most panels in a row; 0 for the renderer's choice
    title: str = ""  # of a panel, with names of columns in braces; {panel} is the title without it
    style: str = ""  # the column that chooses colour, line and marker, and makes the legend
    where: str = ""  # a query that chooses rows of the frame
    ordered: bool = False  # styles are ordered values, with colours from dark to light
    legend: str = "{}"  # text of the legend for a style that is not in `labels`
    labels: dict[str, str] = {}  # texts for values of the style, panel and axis columns
    colours: dict[str, str] = {}  # of styles, by value
    layers: list[dict[str, Any]] = []  # marks, drawn in this order on every panel
    x: dict[str, Any] = {}  # horizontal axis: label, scale, linear, min, max, integer, ticks
    y: dict[str, Any] = {}
    colour: dict[str, Any] = {}  # colour bar of a heat map: label, scale, limits, linear
    size: list[float] = []  # width and height of a panel, in inches
    share_y: bool = False  # all panels have one vertical axis


class Output(Section):
    """One table, one figure, a file of numbers for `dvc metrics`, or a page."""

    name: str  # of its files; unique within its form
    module: str  # of the function that makes its data
    declared: str = ""  # module beside the file of its declaration, if that is another one
    chapter: str  # the rule that makes it
    metric: str = BLEU  # of its scores
    form: Literal["table", "figure", "numbers", "page"]
    title: str  # a few words; the caption says the rest
    function: str  # returns its data; see `frames.Data.call` for the function's parameters
    arguments: dict[str, Value | list[str]] = {}  # further arguments of the function
    needs: list[str] = []  # kinds of `INPUTS` or `GROUPS`; without any file of one, it is not made
    uses: list[str] = []  # kinds of which there may be no file
    question: str = ""  # section of the report; the chapter's unless given
    beside: str = ""  # the table after which the report shows a figure
    allow_empty: bool = False  # a table may have no row
    csv: dict[str, str] = {}  # new names of columns in the CSV
    csv_columns: list[str] = []  # columns that the CSV has, in this order; all unless given
    caption: str = ""  # at most two sentences, with names of functions of `captions.py` in braces
    notes: list[str] = []  # names of notes of `captions.py` and `captions.yaml`, or sentences
    warnings: list[str] = []  # names of functions of `captions.py` that return sentences
    # The readable table has a row for every combination of the columns `rows` among the rows that
    # `where` chooses, and the format of every further column by its heading; see `writer.py`.
    rows: list[str] = []
    where: str = ""
    columns: dict[str, Cell] = {}
    draw: Draw = Draw()

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
        """Files below the folder of an experiment's results. A `.json` is the last."""
        folder, ends = FORMS[self.form]
        return [f"{folder}{self.name}.{end}" for end in ends]

    @property
    def anchor(self) -> str:
        """Name within a page. A table and a figure may share a name."""
        return f"{self.form}-{self.name}"


class Chapter(Section):
    """The outputs that one rule makes."""

    name: str  # of its rule, for BLEU
    metric: str = BLEU  # of its outputs
    title: str  # heading in the list of all outputs
    question: str  # section of the report for outputs that name no other
    sections: dict[str, type[Section]] = {}  # settings of its outputs; no two share a flag
    outputs: tuple[Output, ...] = ()

    @property
    def rule(self) -> str:
        """Return the name of its rule."""
        return self.name if self.metric == BLEU else f"{self.name}_by_{self.metric}"

    @property
    def runs(self) -> str:
        """Return the owner in `OWNERS` of its training runs."""
        return "same_heads" if self.name == "headmask" else "runs"

    @property
    def kinds(self) -> list[str]:
        """Kinds of `INPUTS` that its outputs read, each once."""
        kinds = [kind for output in self.outputs for kind in output.kinds]
        return list(dict.fromkeys(["trained_runs"] * bool(self.sections) + kinds))

    @property
    def modules(self) -> list[str]:
        """Modules of its outputs. `fingerprint.code` follows imports and reads declarations."""
        modules = (name for item in self.outputs for name in (item.module, item.declared) if name)
        return list(dict.fromkeys(modules))

    def made_from(self, kinds: Collection[str]) -> "Chapter":
        """Return this chapter with the outputs whose needs are among these kinds of files."""
        able = tuple(output for output in self.outputs if set(output.required) <= set(kinds))
        return self.model_copy(update={"outputs": able})


_MODEL: dict[str, type[Section]] = {"model": ExperimentModel}
_IMPORTANCE = _MODEL | {"importance": ImportanceSettings}
_SECTIONS = {
    "headmask": _IMPORTANCE,
    "voita_roles": _MODEL | {"roles": RolesSettings, "lrp": LrpSettings},
    "voita_pruning": _MODEL | {"gates": GatesSettings, "savings": SavingsSettings},
    "michel": _MODEL | {"ablation": AblationSettings, "importance": RerankSettings},
    "pairs": _IMPORTANCE,
    "atlas": _IMPORTANCE | {"roles": RolesSettings},
}
_CHAPTERS = read_beside(__file__, dict[str, list[str]])  # heading and section of the report

ON_REQUEST = {"silver_agreement"}
"""Chapters that are made only where somebody names them, and that no report shows."""


class _File(Section):
    """One file of declarations, with defaults of its entries.

    `{metric}` stands for the metric. Entries with it are made for every metric of an experiment.
    An entry with `like` is completed from the entry of that name. One that is drawn is a figure,
    any other without a `form` a table. `<name> (figure)` is beside the table `<name>`.
    """

    chapter: str
    defaults: dict[str, Any] = {}
    outputs: dict[str, dict[str, Any]]


@cache
def chapters(metric: str = BLEU) -> tuple[Chapter, ...]:
    """Return all chapters with their outputs: tables first, tables of papers before others."""
    outputs: dict[str, list[Output]] = {name: [] for name in _CHAPTERS}
    for output in sorted(_declared(metric), key=_order):
        outputs[output.chapter].append(output)
    chapters = []
    for name, (title, question) in _CHAPTERS.items():
        known = {"name": name, "title": title, "question": question, "metric": metric}
        chapter = Chapter(**known, sections=_SECTIONS.get(name, {}))
        chapters.append(chapter.model_copy(update={"outputs": tuple(outputs[name])}))
    return tuple(chapters)


def _declared(metric: str) -> Iterator[Output]:
    files = {path: read_settings(path, _File) for path in sorted(_TABLES.rglob("*.yaml"))}
    entries: dict[str, dict[str, Any]] = {}
    for path, file in files.items():
        names = path.relative_to(_TABLES).with_suffix("").parts
        own = {"module": ".".join([_PACKAGE, *names]), "chapter": file.chapter}
        own["declared"] = own["module"]
        entries |= {key: own | file.defaults | entry for key, entry in file.outputs.items()}
    for key in entries:
        entry = _completed(entries[key], entries)
        name, _, figure = key.partition(" ")
        defaults = {"form": "figure" if "draw" in entry else "table", "beside": name * bool(figure)}
        defaults["question"] = _CHAPTERS[entry["chapter"]][1]
        own = entry.get("metric", metric)
        output = Output.model_validate(
            _named(defaults | entry | {"name": name, "metric": own}, own)
        )
        if metric == BLEU:
            yield output
        elif own == metric and "{metric}" in str(entry):
            yield _of_metric(output)


def _named(entry: Any, metric: str) -> Any:
    """Return an entry with a metric for `{metric}` and its column for `{score}`, also in keys."""
    if isinstance(entry, str):
        return entry.replace("{metric}", shown_metric(metric)).replace("{score}", metric)
    if isinstance(entry, dict):
        return {_named(key, metric): _named(value, metric) for key, value in entry.items()}
    return [_named(value, metric) for value in entry] if isinstance(entry, list) else entry


def shown_metric(metric: str) -> str:
    """Return the name of a metric in text."""
    return {BLEU: "BLEU"}.get(metric, metric)


def _of_metric(output: Output) -> Output:
    """Return an output of another metric: `score` in place of `bleu`, without a paper's numbers."""
    changed: dict[str, Any] = {"name": f"{output.name}_{output.metric}", "allow_empty": True}
    changed["beside"] = f"{output.beside}_{output.metric}" if output.beside else ""
    changed["csv"] = {old: new for old, new in output.csv.items() if BLEU not in new}
    changed["notes"] = [text for text in output.notes if "paper" not in text]
    if output.metric not in output.title:
        changed["title"] = f"{output.title}: {output.metric}"
    return output.model_copy(update=changed)


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
