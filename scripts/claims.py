"""Decide the papers' claims from files of results, and tabulate the verdicts.

Results of several experiments are taken together: seeds, pairs and corpora add up.
"""

from pathlib import Path

from headcount.analysis.build import write_only_table
from headcount.analysis.claims.evidence import result_files
from headcount.analysis.frames import Data
from headcount.analysis.outputs import chapters
from headcount.base import command


def main() -> None:
    """Read the flags and write the table."""
    parser = command.parser(__doc__, out="folder of the table")
    description = "folders of results, such as results/quickstart, or files of them"
    parser.add_argument("--results", required=True, nargs="+", type=Path, help=description)
    args = parser.parse_args()
    files = [path for given in args.results for path in result_files(given)]
    (chapter,) = (chapter for chapter in chapters() if chapter.name == "claims")
    origin = command.provenance("scripts/claims.py", {}, None, files, chapter.modules)
    write_only_table(chapter, Data({"outputs": files}, {}), args.out, origin)


if __name__ == "__main__":
    command.run(main)
