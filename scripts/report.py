"""Put the tables and figures of an experiment, by chapter, on one HTML page that opens offline."""

from pathlib import Path

from headcount.base import command
from headcount.findings.page import write_report


def main() -> None:
    """Read the flags and write the page."""
    parser = command.parser(__doc__, out="page to write")
    parser.add_argument("--title", required=True, help="heading of the page")
    words = ".json of tables and of figures; a figure has its .svg beside it"
    parser.add_argument("--exhibits", required=True, nargs="+", type=Path, help=words)
    args = parser.parse_args()
    write_report(args.title, args.exhibits, args.out)


if __name__ == "__main__":
    command.run(main)
