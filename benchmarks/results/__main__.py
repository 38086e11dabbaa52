"""Write the page of what benchmarks measured, from files of results, a chapter for each."""

from pathlib import Path

from benchmarks.results import RESULTS
from benchmarks.results.page import write_page
from headcount.base import command


def main() -> None:
    """Read the files and write the page."""
    parser = command.parser(__doc__)
    words = "files of results; those of the folder, if none is named"
    parser.add_argument(
        "files", type=Path, nargs="*", default=sorted(RESULTS.glob("*.jsonl")), help=words
    )
    parser.add_argument("--out", type=Path, default=RESULTS.with_suffix(".md"), help="the page")
    args = parser.parse_args()
    write_page(args.files, args.out)


if __name__ == "__main__":
    command.run(main)
