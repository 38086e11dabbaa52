"""A chapter from flags to files: reads what its exhibits need, makes them all, writes them."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from headcount.base.files import write_json
from headcount.base.results import provenance
from headcount.base.settings.flags import add_flags, from_flags
from headcount.findings.exhibits import Chapter
from headcount.findings.figures import Drawn, use_style, write_figures
from headcount.findings.inputs import INPUTS, file_flag
from headcount.findings.results import Results
from headcount.findings.tables import Table, write_tables

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
    use_style()
    files = {kind: getattr(args, kind) for kind in chapter.kinds}
    settings = {name: from_flags(args, section) for name, section in chapter.sections.items()}
    results = Results(files, settings)
    given = chapter.made_from([kind for kind, found in files.items() if found])
    tables, figures = make_exhibits(given, results)
    metrics = given.metrics and given.function(given.metrics)(results)
    shown = {name: section.model_dump() for name, section in settings.items()}
    inputs = [path for found in files.values() for path in found]
    origin = provenance(_SCRIPT, shown, None, inputs, given.modules)
    write_tables(tables, args.out / "tables", origin)
    write_figures(figures, args.out / "figures", origin)
    if metrics:
        write_json(args.out / "metrics.json", metrics)


def make_exhibits(chapter: Chapter, results: Results) -> tuple[dict[str, Table], dict[str, Drawn]]:
    """All tables and all figures of a chapter, by name, in its order."""
    tables, figures = (
        {each.name: chapter.function(each.maker)(results) for each in group}
        for group in (chapter.tables, chapter.figures)
    )
    return tables, figures
