"""The page `settings` of the reference: every key, made from the classes that check it."""

from pathlib import Path

from pydantic.fields import FieldInfo

from headcount.base.settings.classifiers import ClassifierModel
from headcount.base.settings.corpora import Corpus
from headcount.base.settings.data import SyntheticSettings
from headcount.base.settings.experiment import Experiment
from headcount.base.settings.flags import shown_default
from headcount.base.settings.model import PRESETS, ModelSettings
from headcount.base.settings.pretrained import PretrainedModel
from headcount.base.settings.runs import PrunedSettings, label
from headcount.base.settings.schema import Schema
from headcount.base.settings.section import Section
from headcount.base.settings.sources import Draw, HoldOut, Overlap, Side, Treebank
from headcount.base.settings.train import GatesSettings
from headcount.base.settings.training_runs import RunSettings
from headcount.base.templates import fill_page

TEMPLATE = Path(__file__).with_suffix(".md")


def _is_section(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, Section)


_SECTIONS: dict[str, tuple[str, type[Section]]] = {
    "": ("The experiment file", Experiment),
    "runs.": ("A run in `runs`", RunSettings),
    "pruned.": ("A run in `pruned`", PrunedSettings),
    "classifiers.models.<name>.": ("A model in `classifiers.models`", ClassifierModel),
} | {
    f"{name}.": (f"`{name}`", field.annotation)
    for name, field in Experiment.model_fields.items()
    if _is_section(field)
}
_CORPORA: dict[str, tuple[str, type[Section]]] = {
    "<corpus>": ("A corpus", Corpus),
    "<corpus>.splits.<split>.<language>": ("A side of a split", Side),
    "<corpus>.overlap.<split>": ("Times of subtitles", Overlap),
    "<corpus>.hold_out.<split>": ("A split out of another", HoldOut),
    "<corpus>.draw.<split>": ("Some of the pairs", Draw),
    "<corpus>.trees.<treebank>": ("A treebank", Treebank),
    "<corpus>.settings": ("The generated corpus", SyntheticSettings),
}


def settings_page() -> str:
    """The whole page, Markdown."""
    paper = GatesSettings.presets["paper"]
    values = {
        "sections": _SECTIONS,
        "corpora": _CORPORA,
        "models": {"<name>": ("A model", PretrainedModel)},
        "rows": _rows,
        "sizes": list(PRESETS["base"]),
        "presets": [[f"`{name}`", *sizes.values()] for name, sizes in PRESETS.items()],
        "paper_gates": [[f"`gates.{k}`", f"`{v}`"] for k, v in paper.items()],
    }
    return fill_page(TEMPLATE, values)


def _rows(section: type[Section], prefix: str) -> list[list[str]]:
    """Key, value, default and meaning of every key."""
    meanings = section.meanings()
    rows = [
        (*_row(section, field, prefix, field.alias or name), meanings[name])
        for name, field in section.model_fields.items()
    ]
    return [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]


def _row(section: type[Section], field: FieldInfo, prefix: str, name: str) -> tuple[str, ...]:
    """Key, value and default."""
    key = f"`{prefix}{name}`"
    if isinstance(field.default, RunSettings):
        return key, "a run, as in `runs`, or none", f"`{label(field.default)}`"
    if _is_section(field):
        default = "must be given" if field.is_required() else "all its defaults"
        return key, "a mapping: see below", default
    schema = Schema(section)
    default = f"`{shown_default(field)}`" if shown_default(field) else "none"
    if field.is_required():
        default = "from the preset" if issubclass(section, ModelSettings) else "must be given"
    return key, schema.words(schema.at((name,))), default
