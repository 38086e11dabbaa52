"""Put the tables and figures of one experiment or several, by question, on one offline page."""

from pathlib import Path

from headcount.analysis.report.page import write_report
from headcount.base import command
from headcount.base.errors import UserError


def main() -> None:
    """Read the flags and write the page."""
    parser = command.parser(__doc__, out="page to write")
    text = "folders of results, such as results/quickstart"
    parser.add_argument("--results", required=True, nargs="+", type=Path, help=text)
    text = "heading of an experiment, once for each folder in their order; default: the names"
    parser.add_argument("--title", action="append", help=text)
    text = "tables and figures to show, such as tables/bleu.json; default: all that exist"
    parser.add_argument("--outputs", nargs="*", default=[], help=text)
    args = parser.parse_args()
    titles = args.title or [folder.name for folder in args.results]
    if len(titles) != len(set(args.results)):
        raise UserError(
            f"--title: expected one for each folder in --results, which differ; found "
            f"{len(titles)} for {len(set(args.results))}"
        )
    write_report(dict(zip(args.results, titles, strict=True)), args.outputs, args.out)


if __name__ == "__main__":
    command.run(main)
