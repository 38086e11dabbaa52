"""Gather the scores of all runs into one table, and their means into metrics.json."""

from pathlib import Path

from headcount.base import command
from headcount.base.files import write_json
from headcount.base.results import provenance
from headcount.findings.scores import metrics, score_table, summary
from headcount.findings.tables import write_table


def main() -> None:
    """Read the flags and write the table and the metrics."""
    parser = command.parser(__doc__)
    parser.add_argument("--scores", required=True, nargs="+", type=Path, help="bleu.json of runs")
    parser.add_argument("--out", required=True, type=Path, help="<table>.csv; the rest goes beside")
    parser.add_argument("--metrics", required=True, type=Path, help="mean scores to write, as JSON")
    args = parser.parse_args()
    table = score_table(args.scores)
    signatures = "; ".join(table["signature"].unique())
    searches = table[["beam", "length_penalty"]].drop_duplicates().itertuples(index=False)
    search = "; ".join(f"beam {beam}, length penalty {penalty}" for beam, penalty in searches)
    caption = f"Corpus scores of every run, by {search}. Signatures: {signatures}."
    origin = provenance("scripts/bleu_table.py", {}, None, args.scores)
    write_table(table, args.out.with_suffix(""), caption, origin, summary(table))
    write_json(args.metrics, metrics(table))


if __name__ == "__main__":
    command.run(main)
