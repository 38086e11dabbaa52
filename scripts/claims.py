"""Decide every claim of the papers from files of results, and tabulate the verdicts.

Results of several experiments are taken together: seeds, pairs and corpora add up.
"""

from pathlib import Path

from headcount.analysis.claims.claims import ledger
from headcount.analysis.claims.evidence import Evidence, result_files
from headcount.analysis.claims.table import caption, claims_table, readable
from headcount.base import command
from headcount.findings.tables import Table, fill_empty, write_tables


def main() -> None:
    """Read the flags and write the table."""
    parser = command.parser(__doc__, out="folder of the table")
    words = "folders of results, such as results/quickstart, or files of them"
    parser.add_argument("--results", required=True, nargs="+", type=Path, help=words)
    args = parser.parse_args()
    files = [path for given in args.results for path in result_files(given)]
    table = claims_table(Evidence(files))
    notes = tuple(ledger().notes)
    shown = Table(fill_empty(table), readable(table), caption(table), notes)
    origin = command.provenance("scripts/claims.py", {}, None, files)
    write_tables({"claims": shown}, args.out, origin)


if __name__ == "__main__":
    command.run(main)
