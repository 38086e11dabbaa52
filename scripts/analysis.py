"""Make the tables and figures of one chapter; `analysis.py CHAPTER --help` lists its inputs."""

from headcount.analysis.build import add_chapter_flags, write_chapter
from headcount.analysis.outputs import chapters
from headcount.base import command


def main() -> None:
    """Read the flags and write the outputs."""
    parser = command.parser(__doc__)
    commands = parser.add_subparsers(dest="chapter", required=True, metavar="CHAPTER")
    for chapter in chapters():
        texts = {"help": chapter.title, "description": chapter.title}
        add_chapter_flags(commands.add_parser(chapter.name, allow_abbrev=False, **texts), chapter)
    args = parser.parse_args(namespace=command.Flags(script="scripts/analysis.py", sections={}))
    known = {chapter.name: chapter for chapter in chapters(args.metric)}
    write_chapter(known[args.chapter], args)


if __name__ == "__main__":
    command.run(main)
