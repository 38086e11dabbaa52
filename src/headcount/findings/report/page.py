"""The report: results of one experiment or several, by question, on one page that opens offline."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from headcount.base.errors import UserError
from headcount.base.files import read_json, write_text
from headcount.base.templates import fill_page
from headcount.findings.chapters import chapters
from headcount.findings.exhibits import FORMS, SHOWN, Exhibit
from headcount.findings.report.drawings import inline_drawing
from headcount.findings.report.opening import DECIDED, LEDGER, Finding, read_findings
from headcount.findings.report.questions import by_question
from headcount.findings.report.shared_notes import share_notes
from headcount.findings.tables import sides

_HERE = Path(__file__)
_WORDS = ("caption", "warnings", "notes", "provenance")
_COMPANIONS = {"atlas.html": "Atlas of heads", "metrics.json": "Mean scores"}
"""Files that an experiment may have beside its tables and figures, and their names."""


def write_report(titles: Mapping[Path, str], only: Collection[str], out: Path) -> None:
    """Write one HTML file on the results in these folders, each under its title.

    `only` names the exhibits that are shown, such as `tables/bleu.json`; all that are there, if it
    is empty. Files are linked by their paths from the page on. What comes from files is escaped;
    only drawings, which this project made, go in as they are. Raises UserError for a name of no
    exhibit, an exhibit that lacks, and a folder without any.
    """
    known = {each.files[-1]: each for each in _known()}
    unknown = sorted(set(only).difference(known))
    if unknown:
        raise UserError(
            f"{unknown[0]}: expected a file of a declared table or figure; "
            "python scripts/reference.py exhibits lists them"
        )
    parts = [
        _Results(folder, title, number, out.parent)
        for number, (folder, title) in enumerate(titles.items(), start=1)
    ]
    for part in parts:
        part.read([known[name] for name in only or known], complete=bool(only))
    write_text(out, _render(parts))


def _known() -> list[Exhibit]:
    """All tables and figures."""
    return [each for chapter in chapters() for each in chapter.exhibits if each.form in SHOWN]


class _Results:
    """What the page shows of one experiment."""

    def __init__(self, folder: Path, title: str, number: int, page: Path):
        self.title, self.number = title, number
        self._folder, self._page = folder, page
        self.blocks: dict[str, dict[str, Any]] = {}
        self.findings: list[Finding] = []

    def read(self, exhibits: list[Exhibit], complete: bool) -> None:
        """Read these exhibits by their anchors; those that lack are left out unless `complete`."""
        for each in exhibits:
            path = self._folder / each.files[-1]
            if complete or path.exists():
                self.blocks[each.anchor] = self._block(each, path)
        if not self.blocks:
            raise UserError(
                f"{self._folder}: expected results of an experiment, tables/ or figures/ with the "
                ".json of each; found none; name the folder of one, such as results/quickstart"
            )

    def find(self, shown: list[Exhibit]) -> None:
        """Read what these results decide; evidence is among the exhibits that are shown."""
        self.findings = read_findings(self._folder / LEDGER, shown)

    @property
    def companions(self) -> list[tuple[str, str]]:
        """Name and address of each file that this experiment has beside its exhibits."""
        return [
            (words, self._address(self._folder / name))
            for name, words in _COMPANIONS.items()
            if (self._folder / name).exists()
        ]

    def _block(self, exhibit: Exhibit, path: Path) -> dict[str, Any]:
        """One table's cells, or one figure's drawing, with all that is said of it."""
        if not path.exists():
            raise UserError(f"{path}: expected the file of a table or figure; make it first")
        found = read_json(path)
        anchor = f"{exhibit.anchor}-{self.number}"
        shown = {"anchor": anchor, "experiment": self.title, "exhibit": exhibit}
        lacking = [key for key in _WORDS if key not in found]
        if lacking:
            raise UserError(
                f"{path}: expected {', '.join(_WORDS)}; found no {lacking[0]}: it is of an older "
                "version; make it again"
            )
        shown |= {key: found[key] for key in _WORDS}
        shown["files"] = [
            (end.upper(), self._address(path.with_suffix(f".{end}")))
            for end in FORMS[exhibit.form][1]
        ]
        if exhibit.form == "figure":
            drawing = path.with_suffix(".svg").read_text(encoding="utf-8")
            words = f"{exhibit.title}. {found['caption']}"
            return shown | {"drawing": Markup(inline_drawing(drawing, anchor, words))}
        columns, rows = found["columns"], found["rows"]
        return shown | {"columns": columns, "rows": rows, "sides": sides(columns, rows)}

    def _address(self, path: Path) -> str:
        return Path(os.path.relpath(path, self._page)).as_posix()


def _render(parts: list[_Results]) -> str:
    there = [each for each in _known() if any(each.anchor in part.blocks for part in parts)]
    asked = [
        (question, [(each, _blocks(each, parts)) for each in exhibits])
        for question, exhibits in by_question(there)
    ]
    shown = [block for _, exhibits in asked for _, blocks in exhibits for block in blocks]
    for part in parts:
        part.find([each for each in there if each.anchor in part.blocks])
    css, script = (_HERE.with_suffix(end).read_text(encoding="utf-8") for end in (".css", ".js"))
    values = {
        "experiments": parts,
        "decided": DECIDED,
        "warnings": _warnings(shown),
        "questions": asked,
        "settings": share_notes(shown),
        "origins": _origins(shown),
        "css": Markup(css),
        "script": Markup(script),
    }
    return fill_page(_HERE.with_suffix(".html"), values)


def _blocks(exhibit: Exhibit, parts: list[_Results]) -> list[dict[str, Any]]:
    """What each experiment has of one exhibit."""
    return [part.blocks[exhibit.anchor] for part in parts if exhibit.anchor in part.blocks]


def _warnings(blocks: list[dict[str, Any]]) -> list[tuple[str, str, list[dict[str, Any]]]]:
    """Each warning once for each experiment: its name, the words, and blocks that have it."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for block in blocks:
        for text in block["warnings"]:
            found.setdefault((block["experiment"], text), []).append(block)
    return [(*key, having) for key, having in found.items()]


def _origins(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How exhibits were made, each origin once; every block is given the number of its own."""
    origins: list[dict[str, Any]] = []
    for block in blocks:
        made = block.pop("provenance") | {"experiment": block["experiment"]}
        if made not in origins:
            origins.append(made)
        block["origin"] = origins.index(made) + 1
    return origins
