"""Tabulate seconds and memory of the jobs of each rule on this machine, from their benchmarks."""

from headcount.analysis.build import write_tables
from headcount.analysis.frames import Data
from headcount.analysis.outputs import chapters
from headcount.base.command import Flags, path, script

LATER = ("cost", "report")
"""Rules whose jobs come after this one: their benchmarks are from an earlier run."""


@script(
    path("--benchmarks", "folder of <rule>/<job>.tsv; it may be empty"), out="folder of the tables"
)
def main(args: Flags) -> None:
    files = sorted(args.benchmarks.glob("*/*.tsv"))
    data = Data({"benchmarks": [path for path in files if path.parent.name not in LATER]}, {})
    (chapter,) = (chapter for chapter in chapters() if chapter.name == "cost")
    write_tables(chapter, data, args.out, args.origin(modules=chapter.modules))
