"""What the report asks: its chapters, and which tables and figures answer each."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from headcount.findings.exhibits import Exhibit
from headcount.findings.inputs import OF_TRAINING


class Question(NamedTuple):
    """One chapter of the report."""

    name: str
    """By which exhibits name it, and its anchor."""

    title: str
    """Its heading."""


QUESTIONS = (
    Question("training", "Data and training"),
    Question("headmask", "HeadMask: does training with masked heads help?"),
    Question("removal", "Sixteen heads: how many can be removed after training?"),
    Question("gates", "Pruning by gates: how many heads does a model need?"),
    Question("functions", "What do heads do?"),
    Question("agreement", "Do measures of a head agree?"),
    Question("claims", "What do the papers claim, and what of it holds here?"),
    Question("speed", "Speed and cost: what is gained, and what did it take?"),
)


_UNTRAINED = {
    "training": Question("training", "Data and scores"),
    "headmask": Question("headmask", "HeadMask: which heads matter?"),
}
"""In place of questions about training, where nothing was trained."""


def questions_of(exhibits: Iterable[Exhibit]) -> list[Question]:
    """All questions, by whether any of these exhibits is about a training."""
    trained = any(set(OF_TRAINING).intersection(each.needs) for each in exhibits)
    others = {} if trained else _UNTRAINED
    return [others.get(question.name, question) for question in QUESTIONS]


def by_question(exhibits: Iterable[Exhibit]) -> Iterator[tuple[Question, list[Exhibit]]]:
    """The questions that any of these answer, in order; a figure follows the table it is beside.

    Raises KeyError for an exhibit of an unknown question.
    """
    exhibits = list(exhibits)
    found: dict[str, list[Exhibit]] = {question.name: [] for question in QUESTIONS}
    for each in exhibits:
        found[each.question].append(each)
    for question in questions_of(exhibits):
        if found[question.name]:
            yield question, _paired(found[question.name])


def _paired(exhibits: list[Exhibit]) -> list[Exhibit]:
    """In their order, but each figure after its table, if that is there."""
    tables = {each.name for each in exhibits if each.form == "table"}
    ordered = []
    for each in exhibits:
        if each.beside not in tables:
            ordered.append(each)
        if each.form == "table":
            ordered += [figure for figure in exhibits if figure.beside == each.name]
    return ordered
