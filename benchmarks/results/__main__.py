"""Write the page of what benchmarks measured, from files of results, a chapter for each."""

from pathlib import Path

from benchmarks.results import record
from benchmarks.results.page import page
from headcount.base import command
from headcount.base.files import write_text

FOLDER = Path("docs/results/speed")


def main() -> None:
    """Read the files and write the page."""
    parser = command.parser(__doc__)
    words = "files of results; those of the folder, if none is named"
    parser.add_argument(
        "files", type=Path, nargs="*", default=sorted(FOLDER.glob("*.jsonl")), help=words
    )
    parser.add_argument("--out", type=Path, default=FOLDER.with_suffix(".md"), help="the page")
    args = parser.parse_args()
    write_text(args.out, page([record.read(file) for file in args.files]))


if __name__ == "__main__":
    command.run(main)
