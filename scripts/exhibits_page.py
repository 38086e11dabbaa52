"""Write the list of all tables and figures, docs/reference/exhibits.md."""

from pathlib import Path

from headcount.base import command
from headcount.base.files import write_text
from headcount.findings.report.listing import write_listing


def main() -> None:
    """Parse the flag, write the page."""
    parser = command.parser(__doc__)
    page = Path("docs/reference/exhibits.md")
    parser.add_argument("--out", type=Path, default=page, help="the page")
    write_text(parser.parse_args().out, write_listing())


if __name__ == "__main__":
    command.run(main)
