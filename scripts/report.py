"""Put the tables and figures of one experiment or several, by question, on one offline page."""

from pathlib import Path

from headcount.base import command
from headcount.base.errors import UserError
from headcount.findings.report.page import write_report


def main() -> None:
    """Read the flags and write the page."""
    parser = command.parser(__doc__, out="page to write")
    words = "folders of results, such as results/quickstart"
    parser.add_argument("--results", required=True, nargs="+", type=Path, help=words)
    words = "heading of one of them, once for each and in their order; unless given, their names"
    parser.add_argument("--title", action="append", help=words)
    words = "names of what is shown, such as tables/bleu.json; unless given, all that is there"
    parser.add_argument("--exhibits", nargs="*", default=[], help=words)
    args = parser.parse_args()
    titles = args.title or [folder.name for folder in args.results]
    if len(titles) != len(set(args.results)):
        raise UserError(
            f"--title: expected one for each folder in --results, each of them once; found "
            f"{len(titles)} for {len(set(args.results))}"
        )
    write_report(dict(zip(args.results, titles, strict=True)), args.exhibits, args.out)


if __name__ == "__main__":
    command.run(main)
