"""Make the outputs of a chapter from files: data, text, drawing, and the files of each."""

from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path
from typing import Any

from headcount.analysis.captions import describe
from headcount.analysis.figures.render import draw
from headcount.analysis.figures.style import write_figure
from headcount.analysis.frames import Data
from headcount.analysis.inputs import BLEU, INPUTS, file_flag, files_in
from headcount.analysis.outputs import Chapter, Output
from headcount.analysis.writer import write_table
from headcount.base.command import Flags
from headcount.base.files import write_json, write_text
from headcount.base.settings.flags import add_flags, from_flags


def add_chapter_flags(parser: ArgumentParser, chapter: Chapter) -> None:
    """Declare a flag for each kind of files, the folder of the results, and the settings."""
    for kind in chapter.kinds:
        description = INPUTS[kind].describe()
        parser.add_argument(file_flag(kind), nargs="*", default=[], type=Path, help=description)
    description = "metric of the scores, with a table or figure of its own"
    parser.add_argument("--metric", default=BLEU, help=description)
    description = "folder of the results; tables and figures have a folder each in it"
    parser.add_argument("--out", required=True, type=Path, help=description)
    for section in chapter.sections.values():
        add_flags(parser, section)


def write_chapter(chapter: Chapter, args: Flags) -> None:
    """Write those outputs of a chapter whose needs are given. `args` are the flags, parsed."""
    files = {
        kind: [file for given in getattr(args, kind) for file in files_in(kind, given)]
        for kind in chapter.kinds
    }
    settings = {name: from_flags(args, section) for name, section in chapter.sections.items()}
    given = chapter.made_from([kind for kind in chapter.kinds if getattr(args, kind)])
    # Times change with the machine, and their rule lists none.
    inputs = [path for kind in files.keys() - {"benchmarks"} for path in files[kind]]
    origin = args.origin(inputs, modules=given.modules, **settings)
    write_outputs(given, Data(files, settings, args.metric), args.out, origin)


def write_outputs(chapter: Chapter, data: Data, folder: Path, origin: dict[str, Any]) -> None:
    """Make the data of all outputs of a chapter, then write them."""
    made = [(output, make(output, data)) for output in chapter.outputs]
    for output, value in made:
        if output.form == "numbers":
            write_json(folder / output.files[0], value)
        elif output.form == "page":
            write_text(folder / output.files[0], value(origin))
        elif output.form == "table":
            text = describe(output, value, data)
            write_table(output, value, text, folder / "tables", origin)
        else:
            text, drawing = describe(output, value, data), draw(output, value, data)
            write_figure(drawing, output, value, text, folder / "figures", origin)


def make(output: Output, data: Data) -> Any:
    """Return what the function of an output makes: a frame, or what is JSON, or a page."""
    function = getattr(import_module(output.module), output.function)
    return data.call(function, output.arguments)
