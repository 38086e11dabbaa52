"""Chapters of tables and figures made from files by hand, without a command line."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from headcount.base.settings.run_file import write_run
from headcount.base.settings.section import Section
from headcount.base.settings.training_runs import RunSettings
from headcount.findings.chapters import Chapter, chapters
from headcount.findings.figures import use_style
from headcount.findings.make import make_exhibits
from headcount.findings.results import Results

Lists = Mapping[str, list[Path]]


def list_run(lists: dict[str, list[Path]], folder: Path, run: tuple[str, str, int]) -> None:
    """Write the run.json of a training run (pair, name, seed) below a folder, and list it once."""
    pair, name, seed = run
    path = folder / "train" / pair / name / f"seed{seed}" / "run.json"
    if path not in lists["trained_runs"]:
        write_run(path.parent, RunSettings.model_validate(name))
        lists["trained_runs"].append(path)


def make_chapter(
    name: str, lists: Lists, settings: Mapping[str, Section]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tables and figures by name: of the exhibits that these files are enough for."""
    made = make_exhibits(_given(name, lists), gather_results(name, lists, settings))
    return made["table"], made["figure"]


def make_tables(name: str, lists: Lists, settings: Mapping[str, Section]) -> dict[str, Any]:
    """The tables alone: figures take seconds to draw."""
    given = _given(name, lists)
    tables = tuple(each for each in given.exhibits if each.form == "table")
    results = gather_results(name, lists, settings)
    return make_exhibits(replace(given, exhibits=tables), results)["table"]


def _given(name: str, lists: Lists) -> Chapter:
    return chapter_of(name).made_from([kind for kind, found in lists.items() if found])


def gather_results(name: str, lists: Lists, settings: Mapping[str, Section]) -> Results:
    """What the exhibits of a chapter are made from."""
    return Results({kind: lists.get(kind, []) for kind in chapter_of(name).kinds}, settings)


def make_alone(
    name: str, lists: Lists, settings: Mapping[str, Section], without: Collection[str] = ()
) -> set[str]:
    """Names of the exhibits made, each from files of no other kinds than those it declares.

    `without`: exhibits that nothing can be made of but files of theirs.
    """
    use_style()
    made = set()
    chapter = chapter_of(name)
    for each in chapter.exhibits:
        if each.name in without:
            continue
        kinds = (*chapter.uses, *each.needs, *each.uses)
        each.make(Results({kind: lists.get(kind, []) for kind in kinds}, settings))
        made.add(each.name)
    return made


def chapter_of(name: str) -> Chapter:
    """The chapter of this name."""
    (chapter,) = (each for each in chapters() if each.name == name)
    return chapter


def one_row(table: pd.DataFrame, keys: dict) -> dict:
    """The only row that has these values, by columns."""
    (found,) = table[(table[list(keys)] == list(keys.values())).all(axis=1)].to_dict("records")
    return found
