"""Draw attention maps: one figure of all sentences in a file that scripts/attention.py wrote.

The ending says how: .svg, .pdf or .png. Letters are joined and right-to-left scripts ordered.
"""

from pathlib import Path

from headcount.base import command
from headcount.findings.voita_roles.attention_maps import write_maps


def main() -> None:
    """Read the flags and draw."""
    parser = command.parser(__doc__, out="figure to write")
    parser.add_argument("--weights", required=True, type=Path, help="JSON of scripts/attention.py")
    parser.add_argument("--title", default="", help="above the first map; the head by default")
    args = parser.parse_args()
    write_maps(args.weights, args.title, args.out)


if __name__ == "__main__":
    command.run(main)
