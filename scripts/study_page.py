"""Write the page of the study of HeadMask from the tables of kept runs."""

from pathlib import Path

from headcount.base import command
from headcount.findings.report.study.page import write_study


def main() -> None:
    """Read the flags and write the page."""
    parser = command.parser(__doc__, out="page to write, such as docs/results/headmask_study.md")
    words = "folder of kept results, with tables/ of each experiment"
    parser.add_argument("--kept", default=Path("docs/results"), type=Path, help=words)
    words = "folder of the experiments' settings"
    parser.add_argument("--config", default=Path("config"), type=Path, help=words)
    args = parser.parse_args()
    write_study(args.kept, args.out, args.config)


if __name__ == "__main__":
    command.run(main)
