"""Tabulate what the jobs of each rule took here: seconds and memory, from their benchmarks.

Benchmarks change at every run and no phase of DVC keeps them; so they are found in their folder
and are no input of the rule.
"""

from pathlib import Path

from headcount.base import command
from headcount.findings.chapters import chapters
from headcount.findings.make import make_exhibits
from headcount.findings.results import Results
from headcount.findings.tables import write_tables

LATER = ("cost", "report")
"""Rules whose jobs come after: what they took was measured in an earlier run."""


def main() -> None:
    """Read the flags and write the table."""
    parser = command.parser(__doc__, out="folder of the tables")
    words = "folder of <rule>/<job>.tsv; it may be empty"
    parser.add_argument("--benchmarks", required=True, type=Path, help=words)
    args = parser.parse_args()
    found = sorted(args.benchmarks.glob("*/*.tsv"))
    files = [path for path in found if path.parent.name not in LATER]
    (chapter,) = (each for each in chapters() if each.name == "cost")
    estimate = [path for path in [args.benchmarks / "estimate.csv"] if path.exists()]
    made = make_exhibits(chapter, Results({"benchmarks": files, "estimate": estimate}, {}))
    origin = command.provenance("scripts/cost.py", {}, None, [], chapter.modules)
    write_tables(made["table"], args.out, origin)


if __name__ == "__main__":
    command.run(main)
