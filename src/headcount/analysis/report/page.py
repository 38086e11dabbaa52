"""The report: results of one experiment or several, by question, on one page that opens offline."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from headcount.analysis.outputs import FORMS, SHOWN, Output, chapters
from headcount.analysis.report.answers import (
    DECIDED,
    answer,
    answers,
    open_claims,
    read_claims,
    rows,
)
from headcount.analysis.report.layout import inline_drawing, share
from headcount.analysis.report.questions import by_question
from headcount.analysis.writer import sides
from headcount.base.errors import UserError
from headcount.base.files import read_json, write_text
from headcount.base.templates import fill_page

_HERE = Path(__file__)
_KEYS = ("caption", "warnings", "notes", "provenance")
_COMPANIONS = {"atlas.html": "Atlas of heads", "metrics.json": "Mean scores"}
"""Files that an experiment may have beside its tables and figures, and their names."""


def write_report(titles: Mapping[Path, str], only: Collection[str], page: Path) -> None:
    """Write one HTML file on the results in these folders, each under its title.

    `only` names the outputs to show, such as `tables/bleu.json`. If it is empty, the page shows all
    that exist. All text is escaped. Links to files are relative to the page. Raises UserError for
    an unknown or missing output, and for a folder without any.
    """
    known = {item.files[-1]: item for chapter in chapters() for item in chapter.outputs}
    known = {name: item for name, item in known.items() if item.form in SHOWN}
    unknown = sorted(set(only).difference(known))
    if unknown:
        raise UserError(
            f"{unknown[0]}: expected the .json of a declared table or figure; "
            "python scripts/reference.py outputs lists them"
        )
    wanted = [known[name] for name in only or known]
    parts = [
        _read(folder, title, number, wanted, bool(only), page.parent)
        for number, (folder, title) in enumerate(titles.items(), start=1)
    ]
    write_text(page, _render(parts, wanted))


def _read(
    folder: Path, title: str, number: int, wanted: list[Output], all_of_them: bool, page: Path
) -> dict[str, Any]:
    """Return all that the page shows of one experiment; `blocks` are its outputs by anchor."""
    shown = [item for item in wanted if all_of_them or (folder / item.files[-1]).exists()]
    if not shown:
        raise UserError(
            f"{folder}: expected results of an experiment, tables/ or figures/ with .json files, "
            "found none; name a folder such as results/quickstart"
        )
    blocks = {item.anchor: _block(item, folder, number, page) | {"of": title} for item in shown}
    claims = read_claims(folder)
    found = [answer(asked, claims) for asked in answers().values()] if len(claims) else []
    for one in found:
        names = (f"figure-{name}" for name in one["question"].figures)
        one["figure"] = next((blocks[name] for name in names if name in blocks), None)
    links = [(text, folder / name) for name, text in _COMPANIONS.items()]
    return {
        "title": title,
        "number": number,
        "blocks": blocks,
        "answers": found,
        "claims": rows(claims, shown),
        "open": open_claims(claims),
        "links": [(text, _address(path, page)) for text, path in links if path.exists()],
    }


def _block(output: Output, folder: Path, number: int, page: Path) -> dict[str, Any]:
    """Return cells of a table or drawing of a figure, with its text and its files."""
    path, anchor = folder / output.files[-1], f"{output.anchor}-{number}"
    if not path.exists():
        raise UserError(f"{path}: expected the file of a table or figure; make it first")
    content = read_json(path)
    missing = [key for key in _KEYS if key not in content]
    if missing:
        raise UserError(
            f"{path}: expected {', '.join(_KEYS)}; found no {missing[0]}: an older version wrote "
            "the file; make it again"
        )
    ends = FORMS[output.form][1]
    files = [(end.upper(), _address(path.with_suffix(f".{end}"), page)) for end in ends]
    block = content | {"output": output, "anchor": anchor, "files": files}
    if output.form == "figure":
        drawing = path.with_suffix(".svg").read_text(encoding="utf-8")
        return block | inline_drawing(drawing, anchor, f"{output.title}. {content['caption']}")
    return block | {"sides": sides(content["columns"], content["rows"])}


def _address(path: Path, page: Path) -> str:
    return Path(os.path.relpath(path, page)).as_posix()


def _render(parts: list[dict[str, Any]], wanted: list[Output]) -> str:
    shown = [item for item in wanted if any(item.anchor in part["blocks"] for part in parts)]
    sections = [
        (name, title, [(item, _of(item, parts)) for item in outputs])
        for name, title, outputs in by_question(shown)
    ]
    blocks = [block for _, _, outputs in sections for _, of in outputs for block in of]
    values = {
        "experiments": parts,
        "decided": DECIDED,
        "sections": sections,
        "warnings": share(blocks, "warnings"),
        "settings": share(blocks, "notes"),
        "origins": _origins(blocks),
        "css": Markup(_HERE.with_suffix(".css").read_text(encoding="utf-8")),
        "script": Markup(_HERE.with_suffix(".js").read_text(encoding="utf-8")),
    }
    return fill_page(_HERE.with_suffix(".html"), values)


def _of(output: Output, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the blocks of an output, one for each experiment that has it."""
    return [part["blocks"][output.anchor] for part in parts if output.anchor in part["blocks"]]


def _origins(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return how outputs were made, each origin once; a block gets the number of its origin."""
    origins: list[dict[str, Any]] = []
    for block in blocks:
        made = block["provenance"] | {"experiment": block["of"]}
        if made not in origins:
            origins.append(made)
        block["origin"] = origins.index(made) + 1
    return origins
