"""Tabulate what the jobs of each rule took here: seconds and memory, from their benchmarks.

Benchmarks change at every run and no phase of DVC keeps them; so they are found in their folder
and are no input of the rule.
"""

from pathlib import Path

from headcount.analysis.build import write_only_table
from headcount.analysis.frames import Data
from headcount.analysis.outputs import chapters
from headcount.base import command

LATER = ("cost", "report")
"""Rules whose jobs come after this one: their benchmarks are from an earlier run."""


def main() -> None:
    """Read the flags and write the table."""
    parser = command.parser(__doc__, out="folder of the tables")
    description = "folder of <rule>/<job>.tsv; it may be empty"
    parser.add_argument("--benchmarks", required=True, type=Path, help=description)
    args = parser.parse_args()
    files = sorted(args.benchmarks.glob("*/*.tsv"))
    files = [path for path in files if path.parent.name not in LATER]
    data = Data({"benchmarks": files}, {})
    (chapter,) = (chapter for chapter in chapters() if chapter.name == "cost")
    origin = command.provenance("scripts/cost.py", {}, None, [], chapter.modules)
    write_only_table(chapter, data, args.out, origin)


if __name__ == "__main__":
    command.run(main)
