"""Decide every claim of the papers from files of results, and tabulate the verdicts.

Results of several experiments are taken together: seeds, pairs and corpora add up.
"""

from pathlib import Path

from headcount.analysis.claims.evidence import result_files
from headcount.base import command
from headcount.findings.chapters import chapters
from headcount.findings.make import make_exhibits
from headcount.findings.results import Results
from headcount.findings.tables import write_tables


def main() -> None:
    """Read the flags and write the table."""
    parser = command.parser(__doc__, out="folder of the table")
    words = "folders of results, such as results/quickstart, or files of them"
    parser.add_argument("--results", required=True, nargs="+", type=Path, help=words)
    args = parser.parse_args()
    files = [path for given in args.results for path in result_files(given)]
    (chapter,) = (each for each in chapters() if each.name == "claims")
    kinds = dict.fromkeys(chapter.kinds, []) | {"exhibits": files}
    made = make_exhibits(chapter, Results(kinds, {}))
    origin = command.provenance("scripts/claims.py", {}, None, files, chapter.modules)
    write_tables(made["table"], args.out, origin)


if __name__ == "__main__":
    command.run(main)
