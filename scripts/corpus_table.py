"""Write the table of corpora: sizes, subwords, duplicates, overlap and what the filters dropped.

--pair, --splits, --text and --bpe are given once for each pair, in the same order.
"""

from pathlib import Path

from headcount.base import command
from headcount.base.errors import UserError
from headcount.base.results import provenance
from headcount.data.corpus_report import PairFolders, corpus_table, input_files, summary
from headcount.findings.tables import write_table

_CAPTION = (
    "The corpora; a / b is source / target. Words are counted after tokenising, pieces after "
    "byte-pair encoding. Dropped: by the filters for training. In train too: source lines that are "
    "also in the training source."
)


def main() -> None:
    """Read the flags and write the table as CSV, Markdown and LaTeX."""
    parser = command.parser(__doc__)
    for flag, kind, words in (
        ("--pair", str, "name of a pair"),
        (
            "--splits",
            lambda names: names.split(","),
            "its splits, train first, with commas between",
        ),
        ("--text", Path, "its folder of cleaned text"),
        ("--bpe", Path, "its folder of byte-pair encoding"),
    ):
        parser.add_argument(flag, required=True, action="append", type=kind, help=words)
    parser.add_argument("--out", required=True, type=Path, help="<table>.csv; the rest goes beside")
    args = parser.parse_args()
    each = (args.pair, args.splits, args.text, args.bpe)
    if len(set(map(len, each))) > 1 or args.out.suffix != ".csv":
        raise UserError("expected the same number of each of the four, and a .csv after --out")
    pairs = [PairFolders(*folders) for folders in zip(*each, strict=True)]
    table = corpus_table(pairs)
    origin = provenance("scripts/corpus_table.py", {}, None, input_files(pairs))
    write_table(table, args.out.with_suffix(""), _CAPTION, origin, summary(table))


if __name__ == "__main__":
    command.run(main)
