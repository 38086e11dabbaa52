"""Write the page of one experiment's results from its tables; its findings into another page."""

from datetime import date
from pathlib import Path

from headcount.base import command
from headcount.findings.report.results_page import put_findings, write_results_page


def main() -> None:
    """Read the flags and write the pages."""
    parser = command.parser(__doc__, out="page to write, such as docs/results/quickstart.md")
    words = "folder of results, such as results/quickstart"
    parser.add_argument("--results", required=True, type=Path, help=words)
    words = "what the experiment ran on: processor, cores, what else ran"
    parser.add_argument("--machine", required=True, help=words)
    words = "day of the run, such as 2026-11-23"
    parser.add_argument("--date", required=True, type=date.fromisoformat, help=words)
    words = "commit of the project that trained the models"
    parser.add_argument("--commit", required=True, help=words)
    words = "claims to begin with, such as HM-03"
    parser.add_argument("--short", required=True, nargs="+", help=words)
    words = "page that has these claims between two marks"
    parser.add_argument("--into", type=Path, help=words)
    args = parser.parse_args()
    made = {"machine": args.machine, "date": args.date.isoformat(), "commit": args.commit}
    listed = write_results_page(args.results, made, args.short, args.out)
    if args.into:
        put_findings(args.into, listed)


if __name__ == "__main__":
    command.run(main)
