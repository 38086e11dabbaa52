"""The sections of the report, and the order of tables and figures in them."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import RootModel

from headcount.analysis.inputs import OF_TRAINING
from headcount.analysis.outputs import Output
from headcount.base.settings.reader import read_settings
from headcount.base.settings.section import Section


class Question(Section):
    """A section of the report."""

    title: str
    untrained: str = ""
    """Title where no output is about a training."""


def questions() -> dict[str, Question]:
    """Return all sections by name, in the order of the page."""
    path = Path(__file__).with_suffix(".yaml")
    return read_settings(path, RootModel[dict[str, Question]]).root


def by_question(outputs: Iterable[Output]) -> Iterator[tuple[str, str, list[Output]]]:
    """Yield name, title and outputs of every section that has any.

    Raises KeyError for an output of an unknown section.
    """
    sections: dict[str, list[Output]] = {name: [] for name in questions()}
    for output in outputs:
        sections[output.question].append(output)
    needs = {kind for members in sections.values() for item in members for kind in item.required}
    trained = not needs.isdisjoint(OF_TRAINING)
    for name, question in questions().items():
        if sections[name]:
            title = question.title if trained else question.untrained or question.title
            yield name, title, in_order(sections[name])


def in_order(outputs: list[Output]) -> list[Output]:
    """Return outputs in their order, but a figure after the table that it is declared beside."""
    tables = {item.name: place for place, item in enumerate(outputs) if item.form == "table"}
    places = [(tables.get(item.beside, place), place) for place, item in enumerate(outputs)]
    return [outputs[place] for _, place in sorted(places)]
