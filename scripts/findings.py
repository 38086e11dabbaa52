"""Make the tables and figures of one chapter of an experiment's results.

`findings.py CHAPTER --help` lists what a chapter is made from; `reference.py exhibits` says which
tables and figures are left out without a file. Files of runs are found by their folders,
`<pair>/<run>/seed<k>/`.
"""

from headcount.base import command
from headcount.findings.chapters import chapters
from headcount.findings.make import add_chapter_flags, write_chapter


def main() -> None:
    """Read the flags and write."""
    parser = command.parser(__doc__)
    commands = parser.add_subparsers(dest="chapter", required=True, metavar="CHAPTER")
    known = {chapter.name: chapter for chapter in chapters()}
    for name, chapter in known.items():
        words = {"help": chapter.title, "description": chapter.title}
        add_chapter_flags(commands.add_parser(name, allow_abbrev=False, **words), chapter)
    args = parser.parse_args()
    write_chapter(known[args.chapter], args)


if __name__ == "__main__":
    command.run(main)
