"""Lint for docstrings and names: sentences with a verb, few semicolons, no riddles."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = [path for path in (ROOT / "src/headcount").iterdir() if path.is_dir()]
ROOMS += [ROOT / "src/headcount_hf", ROOT / "workflow", ROOT / "scripts"]
CLAUSES = {"What", "Whether", "How", "Those", "That", "Which", "Who", "Whose", "Where", "When"}
CLAUSES |= {"If"}
ARTICLES = {"The", "A", "An", "All", "One", "Each", "Every", "Any", "Some", "Its", "Their", "No"}
NOT_VERBS = CLAUSES | ARTICLES | {"Of", "In", "For", "On", "As", "This", "These", "It", "Not"}
RIDDLES = re.compile(r"\b(told|those of|that of (its|their)|none (that|which))\b", re.I)
NAMES = {"found", "told", "each"}
SEMICOLONS = 2  # for 1,000 words of docstrings
Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = Function | ast.ClassDef | ast.Module


@cache
def nodes(room: Path) -> list[tuple[str, ast.AST]]:
    """Return the syntax nodes of a room with the file and line of each."""
    return [
        (f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}", node)
        for path in sorted(room.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    ]


def docstrings(room: Path) -> Iterator[tuple[str, Documented, str]]:
    """Yield place, node and text of every docstring of a room."""
    for place, node in nodes(room):
        if isinstance(node, Documented) and (text := ast.get_docstring(node)):
            yield place, node, text


def is_property(node: ast.AST) -> bool:
    """Return True for properties, which noun phrases describe."""
    return any("property" in ast.dump(decorator) for decorator in node.decorator_list)


@pytest.mark.parametrize("room", ROOMS, ids=lambda path: path.name)
def test_docstrings_start_with_a_verb_or_a_noun_phrase(room):
    wrong = []
    for place, node, text in docstrings(room):
        verb = isinstance(node, Function) and not is_property(node)
        if text.split(maxsplit=1)[0].rstrip(",.:") in (NOT_VERBS if verb else CLAUSES):
            wrong.append(f"{place}: {text.splitlines()[0]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("room", ROOMS, ids=lambda path: path.name)
def test_docstrings_have_few_semicolons_and_no_riddles(room):
    texts = list(docstrings(room))
    riddles = [f"{place}: {text}" for place, _, text in texts if RIDDLES.search(text)]
    assert not riddles, "\n".join(riddles)
    words = sum(len(text.split()) for *_, text in texts)
    semicolons = [place for place, _, text in texts for _ in range(text.count(";"))]
    assert len(semicolons) <= SEMICOLONS * words / 1000 + 1, "\n".join(semicolons)


@pytest.mark.parametrize("room", ROOMS, ids=lambda path: path.name)
def test_names_are_nouns(room):
    bound = [
        f"{place}: {name}"
        for place, node in nodes(room)
        for name in [getattr(node, "id", getattr(node, "arg", None))]
        if name in NAMES
        and (isinstance(node, ast.arg) or isinstance(getattr(node, "ctx", None), ast.Store))
    ]
    assert not bound, "\n".join(bound)
