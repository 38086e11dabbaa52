"""The sections of the report, and the order of tables and figures in them."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import RootModel

from headcount.analysis.inputs import OF_TRAINING
from headcount.analysis.outputs import Output
from headcount.base.settings.reading.reader import read_settings

Questions = RootModel[dict[str, dict[str, str]]]


def by_question(outputs: Iterable[Output]) -> Iterator[tuple[str, str, list[Output]]]:
    """Yield name, title and outputs of every section that has any.

    Raises KeyError for an output of an unknown section.
    """
    questions = read_settings(Path(__file__).with_suffix(".yaml"), Questions).root
    sections: dict[str, list[Output]] = {name: [] for name in questions}
    for output in outputs:
        sections[output.question].append(output)
    kinds = {
        kind for members in sections.values() for output in members for kind in output.required
    }
    title = "untrained" if kinds.isdisjoint(OF_TRAINING) else "title"
    for name, members in sections.items():
        if members:
            yield name, questions[name].get(title, questions[name]["title"]), in_order(members)


def in_order(outputs: list[Output]) -> list[Output]:
    """Return outputs in their order, but a figure after the table that it is declared beside."""
    tables = {item.name: place for place, item in enumerate(outputs) if item.form == "table"}
    places = [(tables.get(o.beside, n), o.beside != "", n) for n, o in enumerate(outputs)]
    return [outputs[place] for *_, place in sorted(places)]
