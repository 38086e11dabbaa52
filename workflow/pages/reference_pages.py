"""Pages of the reference that are made from the code."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from pages.files_page import files_page

from headcount.analysis.claims.table import claims_page
from headcount.analysis.inputs import with_groups
from headcount.analysis.outputs import chapters
from headcount.base import errors
from headcount.base.settings.experiment import experiment_names, load_experiment
from headcount.base.settings.reading.handbook import settings_page

CONFIG = Path(__file__).parents[2] / "config"
RULES = Path(__file__).parents[1] / "rules"
OF_PAPERS = ("headmask_ro", "headmask_tr", "headmask_vi", "headmask_zh", "voita_", "michel_")
"""Prefixes of the experiments with the corpora and sizes of a paper."""
_HEADER = re.compile(r"(?:#.*\n)+")
_RULE = re.compile(
    r'^(?:use rule (?P<base>\w+) as )?(?:rule )?(?P<name>\w+)(?: with)?:\n    """(?P<text>.*)"""',
    re.M,
)
_TEXT_OF_PAPERS = """# The papers' own experiments

`config/` contains one file for each experiment of a paper. Its comments list what the paper says,
what its code says, and what was chosen where both are silent. The corpora come from the addresses
in `config/corpora.yaml`. `snakemake -n --config experiment=headmask_ro` lists all jobs of an
experiment with nothing on disk.

| experiment | content | pairs | seeds | runs | pruned runs |
|---|---|---|--:|--:|--:|
"""

_TEXT_OF_OUTPUTS = """\
# Tables and figures

A chapter is one rule: `snakemake --cores all headmask` makes the tables and figures of HeadMask.
Tables are `results/<experiment>/tables/<name>.{csv,md,tex,json}`. Figures are
`results/<experiment>/figures/<name>.{pdf,svg,png,csv,json}`. The `.json` records how a table or
figure was made. A page is `results/<experiment>/<name>.html`.

A table or figure is made if the experiment has files of all the kinds that it is made from. Kinds
in brackets are optional. [Files and columns](files.md) lists the files of all kinds. The
declarations are in `src/headcount/analysis/tables/*.yaml`.
"""


def outputs_page() -> str:
    """Return the list of all tables and figures, with the kinds of files they are made from."""
    parts = [_TEXT_OF_OUTPUTS]
    for chapter in chapters():
        rows = [("name", "form", "content", "made from"), ["---"] * 4]
        for output in chapter.outputs:
            uses = with_groups(tuple(output.kinds[len(output.required) :]))
            kinds = [*with_groups(output.required), *(f"({kind})" for kind in uses)]
            rows.append((f"`{output.name}`", output.form, output.title, ", ".join(kinds)))
        lines = "".join(f"| {' | '.join(row)} |\n" for row in rows)
        parts.append(f"## {chapter.title}: `{chapter.name}`\n\n{lines}")
    return "\n".join(parts)


def rules_page() -> str:
    """Return the list of all rules by file, with the inputs and outputs of the file."""
    parts = [
        "# Rules\n",
        "A rule runs the script of its name in `scripts/`; each has `--help`. `snakemake -n`\n"
        "lists the jobs of an experiment. Folders in angle brackets are those of the experiment:\n"
        "`<results>` is `results/<experiment>`.\n",
    ]
    for file in sorted(RULES.glob("*.smk")):
        text = file.read_text(encoding="utf-8")
        said = re.sub(r"^# ?", "", _HEADER.match(text)[0], flags=re.M)
        rows = "".join(f"| `{name}` | {base} | {text_} |\n" for name, base, text_ in _rules(text))
        table = f"| rule | based on | content |\n|---|---|---|\n{rows}"
        parts.append(f"## `{file.name}`\n\n```text\n{said}```\n\n{table}")
    rows = "".join(f"| `{each.name}` | {each.title} |\n" for each in chapters())
    listed = f"| rule | tables and figures |\n|---|---|\n{rows}"
    parts.append(
        f"## Chapters\n\nEach chapter of [tables and figures](outputs.md) is a rule.\n\n{listed}"
    )
    return "\n".join(parts)


def _rules(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield name, base rule and docstring of every rule in a file."""
    for rule in _RULE.finditer(text):
        base = f"`{rule['base']}`" if rule["base"] else ""
        yield rule["name"], base, rule["text"]


def exit_codes_page() -> str:
    """Return the list of exit codes."""
    known = [errors.UserError, errors.EnvironmentFault]
    rows = "".join(f"| {each.exit_code} | {each.__doc__} |\n" for each in known)
    stopped = errors.Interrupted.__doc__
    return f"""# Exit codes

Every script ends with one of these (1 of `workflow/compare.py` says that files differ), and so does
`snakemake`: with the code of the job that failed, whose message it repeats. Where Snakemake itself
refuses its command line, its code is 1.

| code | when |
|---|---|
| 0 | All is done. |
| 1 | A bug: the message is a traceback. |
{rows}| 128 + signal | {stopped} |
| 130 | Ctrl-C ended the command: at once, but for a training, which saves its state at the first. |

{errors.__doc__.removeprefix("Faults that are not bugs. ")}
"""


def papers_page() -> str:
    """Return the table of the papers' experiments."""
    rows = ""
    for name in experiment_names(CONFIG):
        if name.startswith(OF_PAPERS):
            found = load_experiment(name, CONFIG)
            texts = ", ".join(found.pairs or [found.classifiers.corpus])
            counts = [len(found.seeds), len(found.runs) if found.pairs else 0, len(found.pruned)]
            rows += f"| `{name}` | {found.title} | {texts} | {' | '.join(map(str, counts))} |\n"
    return _TEXT_OF_PAPERS + rows


PAGES: dict[str, Callable[[], str]] = {
    "settings": settings_page,
    "rules": rules_page,
    "outputs": outputs_page,
    "files": files_page,
    "exit_codes": exit_codes_page,
    "claims_list": claims_page,
    "papers": papers_page,
}
"""All pages by name; the site has them in docs/reference."""
