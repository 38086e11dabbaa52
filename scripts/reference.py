"""Print a page of the reference that is made from the code, and give MkDocs all such pages."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow"))

from pages import PAGES

from headcount.base import command


def on_files(files: Any, config: Any) -> None:
    """Add all pages to the files of a site."""
    from mkdocs.structure.files import File

    for name, page in PAGES.items():
        files.append(File.generated(config, f"reference/{name}.md", content=page()))


def main() -> None:
    """Print the page, or the names of all pages."""
    parser = command.parser(__doc__)
    parser.add_argument("page", nargs="?", choices=PAGES, metavar="PAGE", help=", ".join(PAGES))
    parser.add_argument("--list", action="store_true", help="print the names of all pages")
    args = parser.parse_args()
    if not args.page and not args.list:
        parser.error(f"expected --list or a page: {', '.join(PAGES)}")
    print("\n".join(PAGES) if args.list else PAGES[args.page](), end="\n" * args.list)


if __name__ == "__main__":
    command.run(main)
