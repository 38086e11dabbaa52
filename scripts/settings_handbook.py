"""Write the table of all settings, docs/reference/settings.md."""

from pathlib import Path

from headcount.base import command
from headcount.base.files import write_text
from headcount.base.settings.handbook import write_page


def main() -> None:
    """Parse the flag, write the page."""
    parser = command.parser(__doc__)
    page = Path("docs/reference/settings.md")
    parser.add_argument("--out", type=Path, default=page, help="the page")
    write_text(parser.parse_args().out, write_page())


if __name__ == "__main__":
    command.run(main)
