"""Draw the training curves of all runs: loss against updates and against time."""

from pathlib import Path

from headcount.base import command
from headcount.base.results import provenance
from headcount.findings.curves import draw_curves
from headcount.findings.figures import use_style, write_figure
from headcount.findings.run_tables import curve_table

_CAPTION = (
    "Loss per target token (nats) during training. Dev loss is plain cross-entropy of the averaged "
    "weights; training loss is label-smoothed, of the weights in training, with dropout and the "
    "update's head mask on."
)


def main() -> None:
    """Read the flags and write the figure with its numbers."""
    parser = command.parser(__doc__)
    parser.add_argument("--curves", required=True, nargs="+", type=Path, help="curves.csv of runs")
    parser.add_argument("--out", required=True, type=Path, help="<figure>.csv; the rest beside it")
    args = parser.parse_args()
    use_style()
    table = curve_table(args.curves)
    origin = provenance("scripts/curves_figure.py", {}, None, args.curves)
    write_figure(draw_curves(table), table, args.out.with_suffix(""), _CAPTION, origin)


if __name__ == "__main__":
    command.run(main)
