"""Pages of the reference that are made from the code."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import yaml

from headcount.analysis.claims.table import claims_page
from headcount.analysis.inputs import INPUTS, OWNERS
from headcount.analysis.measures import MEASURES
from headcount.analysis.outputs import chapters
from headcount.base.handbook import settings_page

MEANINGS = Path(__file__).with_name("columns.yaml")

_INTRODUCTION = """\
# Files and columns

The folder `text` is `data/text/<experiment>/<pair>`, and `bpe` is `data/bpe/<experiment>/<pair>`.
Every other folder is `results/<experiment>/<folder>`; what belongs to a run lies there in
`<pair>/<run>/seed<k>`. Times of pruned runs lie in `prune/<pair>/speed/seed<k>`.

## Kinds of files

The list of [tables and figures](outputs.md) names their input files by these kinds. The columns are
those that are read; a file may have more, which its first line names.

"""


def files_page() -> str:
    """Return kinds of files with their columns, then the meanings of all columns."""
    first: dict[tuple[str, ...], str] = {}  # the kind that has some columns, by these columns
    rows = []
    for name, kind in INPUTS.items():
        named = kind.columns
        same = first.setdefault(named, name)
        shown = listed(named) if same == name or not named else f"as `{same}`"
        owner = OWNERS[kind.owner]
        rows.append((f"`{name}`", f"`{kind.folder}`", listed(kind.names), owner, shown))
    parts = [
        _INTRODUCTION + table(("kind", "folder", "files", "of", "columns"), rows),
        "## Columns\n\nOf the files above, and of the CSV of tables and figures, whose first line "
        "names them.\n",
    ]
    for title, group in meanings().items():
        rows = [(listed(names.split(", ")), words) for names, words in group.items()]
        parts.append(f"### {title}\n\n" + table(("column", "meaning"), rows))
    return "\n".join(parts)


def meanings() -> dict[str, dict[str, str]]:
    """Return the meanings of columns, by group of columns. Measures explain themselves."""
    groups = yaml.safe_load(MEANINGS.read_text(encoding="utf-8"))
    known = {name for group in groups.values() for names in group for name in names.split(", ")}
    measures = {
        name: f"{measure.title}, {measure.unit}; larger means: {measure.more}"
        for name, measure in MEASURES.items()
        if name not in known
    }
    return groups | {"Measures of heads": measures}


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    heads = tuple(heads)
    return "".join(f"| {' | '.join(row)} |\n" for row in (heads, ["---"] * len(heads), *rows))


def listed(names: Iterable[str]) -> str:
    """Return names as code, with commas."""
    return ", ".join(f"`{name}`" for name in names)


RULES = Path(__file__).with_name("rules")
_HEADER = re.compile(r"(?:#.*\n)+")
_RULE = re.compile(
    r'^(?:use rule (?P<base>\w+) as )?(?:rule )?(?P<name>\w+)(?: with)?:\n    """(?P<text>.*)"""',
    re.M,
)
_TEXT_OF_OUTPUTS = """\
# Tables and figures

A chapter is one rule: `snakemake --cores all headmask` makes the tables and figures of HeadMask.
Tables are `results/<experiment>/tables/<name>.{csv,md,tex,json}`. Figures are
`results/<experiment>/figures/<name>.{pdf,svg,png,csv,json}`. The `.json` records how a table or
figure was made. A page is `results/<experiment>/<name>.html`.

A table or figure is made if the experiment has files of all the kinds that it is made from. Kinds
in brackets are optional. [Files and columns](files.md) lists the files of all kinds. The
declarations are in `src/headcount/analysis/tables/*/*.yaml`.
"""

_TEXT_OF_RULES = """\
# Rules

A rule runs the script of its name in `scripts/`; each has `--help`. `snakemake -n`
lists the jobs of an experiment. Folders in angle brackets are those of the experiment:
`<results>` is `results/<experiment>`.
"""


def outputs_page() -> str:
    """Return the list of all tables and figures, with the kinds of files they are made from."""
    parts = [_TEXT_OF_OUTPUTS]
    for chapter in chapters():
        rows = []
        for output in chapter.outputs:
            kinds = [*output.needs, *(f"({kind})" for kind in output.uses)]
            rows.append((f"`{output.name}`", output.form, output.title, ", ".join(kinds)))
        shown = table(("name", "form", "content", "made from"), rows)
        parts.append(f"## {chapter.title}: `{chapter.name}`\n\n{shown}")
    return "\n".join(parts)


def rules_page() -> str:
    """Return the list of all rules by file, with the inputs and outputs of the file."""
    parts = [_TEXT_OF_RULES]
    for file in sorted(RULES.glob("*.smk")):
        text = file.read_text(encoding="utf-8")
        header = re.sub(r"^# ?", "", _HEADER.match(text)[0], flags=re.M)
        rows = [
            (f"`{rule['name']}`", listed(filter(None, [rule["base"]])), rule["text"])
            for rule in _RULE.finditer(text)
        ]
        shown = table(("rule", "based on", "content"), rows)
        parts.append(f"## `{file.name}`\n\n```text\n{header}```\n\n{shown}")
    rows = [(f"`{chapter.name}`", chapter.title) for chapter in chapters()]
    parts.append(
        "## Chapters\n\nEach chapter of [tables and figures](outputs.md) is a rule.\n\n"
        + table(("rule", "tables and figures"), rows)
    )
    return "\n".join(parts)


PAGES: dict[str, Callable[[], str]] = {
    "settings": settings_page,
    "rules": rules_page,
    "outputs": outputs_page,
    "files": files_page,
    "claims_list": claims_page,
}
"""All pages by name; the site has them in docs/reference."""
