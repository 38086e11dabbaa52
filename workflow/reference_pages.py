"""Write docs/reference/rules.md, files.md, exit_codes.md and claims_list.md."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from files_page import RULES, files_page

from headcount.base import command, errors
from headcount.base.files import write_text
from headcount.findings.chapters import chapters
from headcount.findings.claims.decisions import DECISIONS
from headcount.findings.claims.ledger import PAPERS, Claim, claims, paper_of

FOLDER = Path("docs/reference")
_MADE = "*Made from the code; after changing that, run `python workflow/reference_pages.py`.*"
_HEADER = re.compile(r"(?:#.*\n)+")
_RULE = re.compile(
    r'^(?:use rule (?P<like>\w+) as )?(?:rule )?(?P<name>\w+)(?: with)?:\n    """(?P<words>.*)"""',
    re.M,
)


def rules_page() -> str:
    """What every rule does, by the file that has it, with what that file needs and makes."""
    parts = [
        f"# Rules\n\n{_MADE}\n",
        "A rule runs the script of its name in `scripts/`; each has `--help`. `snakemake -n`\n"
        "lists the jobs of an experiment. Folders in angle brackets are those of the experiment:\n"
        "`<results>` is `results/<experiment>`.\n",
    ]
    for file in sorted(RULES.glob("*.smk")):
        text = file.read_text(encoding="utf-8")
        said = re.sub(r"^# ?", "", _HEADER.match(text)[0], flags=re.M)
        rows = "".join(f"| `{name}` | {like} | {words} |\n" for name, like, words in _rules(text))
        table = f"| rule | differs in little from | what it does |\n|---|---|---|\n{rows}"
        parts.append(f"## `{file.name}`\n\n```text\n{said}```\n\n{table}")
    rows = "".join(f"| `{each.name}` | {each.title} |\n" for each in chapters())
    listed = f"| rule | tables and figures |\n|---|---|\n{rows}"
    parts.append(
        f"## Chapters\n\nEach chapter of [tables and figures](exhibits.md) is a rule.\n\n{listed}"
    )
    return "\n".join(parts)


def _rules(text: str) -> Iterator[tuple[str, str, str]]:
    """Name, the rule that it is like, and docstring, of each rule in a file."""
    for found in _RULE.finditer(text):
        like = f"`{found['like']}`" if found["like"] else ""
        yield found["name"], like, found["words"]


def exit_codes_page() -> str:
    """The codes that commands end with."""
    known = [errors.UserError, errors.EnvironmentFault]
    rows = "".join(f"| {each.exit_code} | {each.__doc__} |\n" for each in known)
    stopped = errors.Interrupted.__doc__
    return f"""# Exit codes

{_MADE}

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


def claims_page() -> str:
    """Return the list of all claims, each with the number, rule and limits that decide it."""
    parts = [
        f"# The claims of the papers\n\n{_MADE}\n",
        "Each claim has its place in the paper and its statement, the number that decides it, the\n"
        "rule (of the function that decides it), and the limits by their names in the rule.\n"
        "[Claims](claims.md) explains verdicts and corrections.\n",
    ]
    for paper, (_, title) in PAPERS.items():
        parts.append(f"## {title[0].upper()}{title[1:]}\n")
        parts += [_claim(*each) for each in claims().items() if paper_of(each[0]) == paper]
    return "\n".join(parts)


def _claim(name: str, claim: Claim) -> str:
    rule = " ".join(inspect.getdoc(DECISIONS[claim.decide]).split())
    limits = ", ".join(f"`{limit}` {value}" for limit, value in claim.limits.items())
    source = f" ({claim.limits_from})" if claim.limits_from else ""
    listed = f"- Limits: {limits}{source}\n" if limits else ""
    said = f"**{name}**, {claim.place}: {claim.statement}"
    return f"{said}\n\n- Number: {claim.statistic}\n- Rule: {rule}\n{listed}"


def main() -> None:
    """Write the pages."""
    command.parser(__doc__).parse_args()
    write_text(FOLDER / "rules.md", rules_page())
    write_text(FOLDER / "files.md", files_page(_MADE))
    write_text(FOLDER / "exit_codes.md", exit_codes_page())
    write_text(FOLDER / "claims_list.md", claims_page())


if __name__ == "__main__":
    command.run(main)
