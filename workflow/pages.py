"""Pages of the reference that are made from the code, by the templates in `reference/`."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml

from headcount.analysis.claims.table import claims_page
from headcount.analysis.inputs import INPUTS, OWNERS
from headcount.analysis.measures import MEASURES
from headcount.analysis.outputs import chapters
from headcount.base.files import fill_page
from headcount.base.handbook import settings_page

_HERE = Path(__file__).parent
_HEADER = re.compile(r"(?:#.*\n)+")
_RULE = re.compile(
    r'^(?:use rule (?P<base>\w+) as )?(?:rule )?(?P<name>\w+)(?: with)?:\n    """(?P<text>.*)"""',
    re.M,
)


def _page(name: str, **values: Any) -> str:
    return fill_page(_HERE / "reference" / f"{name}.md", values)


def listed(names: Iterable[str]) -> str:
    """Return names as code, with commas."""
    return ", ".join(f"`{name}`" for name in names)


def files_page() -> str:
    """Return kinds of files with their columns, then the meanings of all columns."""
    first: dict[tuple[str, ...], str] = {}  # the kind that has some columns, by these columns
    kinds = []
    for name, kind in INPUTS.items():
        same = first.setdefault(kind.columns, name)
        shown = listed(kind.columns) if same == name or not kind.columns else f"as `{same}`"
        kinds.append(
            (f"`{name}`", f"`{kind.folder}`", listed(kind.names), OWNERS[kind.owner], shown)
        )
    groups = {
        title: [(listed(names.split(", ")), words) for names, words in group.items()]
        for title, group in meanings().items()
    }
    return _page("files", kinds=kinds, groups=groups)


def meanings() -> dict[str, dict[str, str]]:
    """Return the meanings of columns, by group of columns. Measures explain themselves."""
    groups = yaml.safe_load((_HERE / "columns.yaml").read_text(encoding="utf-8"))
    known = {name for group in groups.values() for names in group for name in names.split(", ")}
    measures = {
        name: f"{measure.title}, {measure.unit}; larger means: {measure.more}"
        for name, measure in MEASURES.items()
        if name not in known
    }
    return groups | {"Measures of heads": measures}


def outputs_page() -> str:
    """Return the list of all tables and figures, with the kinds of files they are made from."""
    tables = []
    for chapter in chapters():
        rows = []
        for output in chapter.outputs:
            kinds = ", ".join([*output.needs, *(f"({kind})" for kind in output.uses)])
            rows.append((f"`{output.name}`", output.form, output.title, kinds))
        tables.append((chapter, rows))
    return _page("outputs", chapters=tables)


def rules_page() -> str:
    """Return the list of all rules by file, with the inputs and outputs of the file."""
    files = []
    for file in sorted(_HERE.glob("rules/*.smk")):
        text = file.read_text(encoding="utf-8")
        header = re.sub(r"^# ?", "", _HEADER.match(text)[0], flags=re.M)
        rules = [
            (f"`{rule['name']}`", listed(filter(None, [rule["base"]])), rule["text"])
            for rule in _RULE.finditer(text)
        ]
        files.append((file.name, header, rules))
    named = [(f"`{chapter.name}`", chapter.title) for chapter in chapters()]
    return _page("rules", files=files, chapters=named)


PAGES: dict[str, Callable[[], str]] = {
    "settings": settings_page,
    "rules": rules_page,
    "outputs": outputs_page,
    "files": files_page,
    "claims_list": claims_page,
}
"""All pages by name; the site has them in docs/reference."""
