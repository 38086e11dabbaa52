"""A chapter from flags to files: reads what its exhibits need, makes them all, writes them."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from headcount.base import command
from headcount.base.files import write_json, write_text
from headcount.base.settings.flags import add_flags, from_flags
from headcount.findings.chapters import Chapter
from headcount.findings.exhibits import FORMS
from headcount.findings.figures import use_style, write_figures
from headcount.findings.inputs import INPUTS, file_flag
from headcount.findings.results import Results
from headcount.findings.tables import write_tables

_SCRIPT = "scripts/findings.py"


def add_chapter_flags(parser: ArgumentParser, chapter: Chapter) -> None:
    """Declare a flag for each kind of files, the folder of the results, and the settings."""
    for kind in chapter.kinds:
        words = INPUTS[kind].words()
        parser.add_argument(file_flag(kind), nargs="*", default=[], type=Path, help=words)
    words = "folder of the results; tables and figures have a folder each in it"
    parser.add_argument("--out", required=True, type=Path, help=words)
    for section in chapter.sections.values():
        add_flags(parser, section)


def write_chapter(chapter: Chapter, args: Namespace) -> None:
    """Make those exhibits whose needs are given, then write them; `args`: the flags, parsed.

    What a function raises that makes one leaves nothing written.
    """
    files = {kind: getattr(args, kind) for kind in chapter.kinds}
    settings = {name: from_flags(args, section) for name, section in chapter.sections.items()}
    given = chapter.made_from([kind for kind, found in files.items() if found])
    made = make_exhibits(given, Results(files, settings))
    inputs = [path for found in files.values() for path in found]
    origin = command.provenance(_SCRIPT, settings, None, inputs, given.modules)
    write_tables(made["table"], args.out / "tables", origin)
    write_figures(made["figure"], args.out / "figures", origin)
    for name, found in made["numbers"].items():
        write_json(args.out / f"{name}.json", found)
    for name, page in made["page"].items():
        write_text(args.out / f"{name}.html", page(origin))


def make_exhibits(chapter: Chapter, results: Results) -> dict[str, dict[str, Any]]:
    """What the function of every exhibit returns, by form and name, in the chapter's order."""
    use_style()
    made: dict[str, dict[str, Any]] = {form: {} for form in FORMS}
    for each in chapter.exhibits:
        made[each.form][each.name] = each.make(results)
    return made
