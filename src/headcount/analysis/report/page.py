"""The report: results of one experiment or several, by question, on one page that opens offline."""

import os
from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from headcount.analysis import read_beside
from headcount.analysis.inputs import BLEU, OF_TRAINING
from headcount.analysis.outputs import FORMS, SHOWN, Output, chapters
from headcount.analysis.report import answers
from headcount.analysis.writer import sides
from headcount.base.errors import UserError
from headcount.base.files import fill_page, read_json, write_text

_HERE = Path(__file__)
# Files that an experiment may have beside its tables and figures, and their names.
_COMPANIONS = {"atlas.html": "Atlas of heads", "metrics.json": "Mean scores"}


def write_report(
    titles: Mapping[Path, str], only: Collection[str], page: Path, metrics: Iterable[str] = ()
) -> None:
    """Write one HTML file on the results in these folders, each under its title.

    `only` names the outputs to show, such as `tables/bleu.json`, by default all that exist, of BLEU
    and then of `metrics`. Links to files are relative to the page.
    """
    made = (chapter for metric in (BLEU, *metrics) for chapter in chapters(metric))
    outputs = (item for chapter in made for item in chapter.outputs if item.form in SHOWN)
    known = {item.files[-1]: item for item in outputs}
    if unknown := sorted(set(only).difference(known)):
        raise UserError(
            f"{unknown[0]}: expected the .json of a declared table or figure; "
            "python scripts/reference.py outputs lists them"
        )
    parts = []
    for number, (folder, title) in enumerate(titles.items(), start=1):
        shown = [known[name] for name in only or known if only or (folder / name).exists()]
        parts.append(_read(folder, shown, page.parent, {"title": title, "number": number}))
    write_text(page, _render(parts, [known[name] for name in only or known]))


def _read(folder: Path, shown: list[Output], page: Path, part: dict[str, Any]) -> dict[str, Any]:
    """Return all that the page shows of one experiment. `blocks` are its outputs by anchor."""
    if not shown:
        raise UserError(
            f"{folder}: expected results of an experiment, tables/ or figures/ with .json files, "
            "found none; name a folder such as results/quickstart"
        )
    blocks = {item.anchor: _block(item, folder, part, page) for item in shown}
    claims = answers.read_claims(folder)
    claims["evidence"] = [answers.evidence(files, shown) for files in claims["files"]]
    answered = answers.answers(claims) if (folder / answers.TABLE).exists() else []
    for answer in answered:
        names = (f"figure-{name}" for name in answer["question"]["figures"])
        answer["figure"] = next((blocks[name] for name in names if name in blocks), None)
    links = {text: folder / name for name, text in _COMPANIONS.items()}
    links = {text: os.path.relpath(path, page) for text, path in links.items() if path.exists()}
    shown_claims = claims.to_dict("records")
    part |= {"headlines": answers.headlines(folder)}
    return part | {"claims": shown_claims, "answers": answered, "links": links, "blocks": blocks}


def _block(output: Output, folder: Path, part: dict[str, Any], page: Path) -> dict[str, Any]:
    """Return cells of a table or drawing of a figure, with its text and its files."""
    path, anchor = folder / output.files[-1], f"{output.anchor}-{part['number']}"
    content = read_json(path)
    if not {"caption", "warnings", "notes", "provenance"} <= set(content):
        raise UserError(f"{path}: expected the file of this version; make it again")
    files = {
        end: os.path.relpath(path.with_suffix(f".{end}"), page) for end in FORMS[output.form][1]
    }
    block = {"output": output, "anchor": anchor, "of": part["title"], "files": files} | content
    if output.form == "figure":
        drawing = b64encode(path.with_suffix(".svg").read_bytes()).decode()
        return block | {"drawing": f"data:image/svg+xml;base64,{drawing}"}
    return block | {"sides": sides(pd.DataFrame(content["rows"], columns=content["columns"]))}


def _render(parts: list[dict[str, Any]], outputs: list[Output]) -> str:
    shown = [item for item in outputs if any(item.anchor in part["blocks"] for part in parts)]
    by_anchor = {item.anchor: [] for item in shown}
    for part in parts:
        for anchor, block in part["blocks"].items():
            by_anchor[anchor].append(block)
    sections = [
        (name, title, [(item, by_anchor[item.anchor]) for item in members])
        for name, title, members in by_question(shown)
    ]
    blocks = [block for *_, members in sections for _, of in members for block in of]
    values = {
        "experiments": parts,
        "decided": answers.DECIDED,
        "minus": answers.minus,
        "sections": sections,
        "warnings": list(dict.fromkeys((b["of"], text) for b in blocks for text in b["warnings"])),
        "origins": _origins(blocks),
        "css": Markup(_HERE.with_suffix(".css").read_text(encoding="utf-8")),
        "script": Markup(_HERE.with_suffix(".js").read_text(encoding="utf-8")),
    }
    return fill_page(_HERE.with_suffix(".html"), values)


def _origins(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return how outputs were made, each origin once. A block gets the number of its origin."""
    origins: list[dict[str, Any]] = []
    for block in blocks:
        made = block["provenance"] | {"of": block["of"]}
        if made not in origins:
            origins.append(made)
        block["origin"] = origins.index(made) + 1
    return origins


def by_question(outputs: Iterable[Output]) -> Iterator[tuple[str, str, list[Output]]]:
    """Yield name, title and outputs of every section that has any."""
    questions = read_beside(__file__, dict[str, dict[str, str]])
    sections: dict[str, list[Output]] = {name: [] for name in questions}
    for output in outputs:
        sections[output.question].append(output)
    kinds = {kind for items in sections.values() for output in items for kind in output.required}
    title = "untrained" if kinds.isdisjoint(OF_TRAINING) else "title"
    for name, members in sections.items():
        if members:
            yield name, questions[name].get(title, questions[name]["title"]), in_order(members)


def in_order(outputs: list[Output]) -> list[Output]:
    """Return outputs in their order, but a figure after the table that it is declared beside."""
    tables = {item.name: place for place, item in enumerate(outputs) if item.form == "table"}
    places = [(tables.get(o.beside, n), o.beside != "", n) for n, o in enumerate(outputs)]
    return [outputs[place] for *_, place in sorted(places)]
