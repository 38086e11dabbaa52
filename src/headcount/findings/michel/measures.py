"""Heads pruned by other measures than importance, and pruned heads that give their mean output."""

from headcount.findings import exhibits
from headcount.findings.figures import COLOURS, Drawn
from headcount.findings.michel.curves import ORDERS, orders_figure
from headcount.findings.michel.measured import BLEU, describe_ranked
from headcount.findings.michel.pruning import measured_points
from headcount.findings.results import Results

_BY_MEASURE = {
    "importance": ORDERS["importance"],
    "fisher_rearranged": ("Fisher information, rearranged", COLOURS[1], "--", "s"),
    "integrated_gradients": ("integrated gradients", COLOURS[2], "-.", "^"),
    "shapley": ("Shapley value", COLOURS[3], "-", "D"),
    "output_norm": ("output norm", COLOURS[4], "--", "v"),
}
_BY_MEANS = {
    "importance": ("importance, zeros", COLOURS[0], "-", "o"),
    "importance_mean": ("importance, means in place of zeros", COLOURS[1], "--", "s"),
    "mean_ablation": ("mean ablation, zeros", COLOURS[2], "-.", "^"),
}


@exhibits.figure(
    "michel_measures", needs=("profiles", "more_measures", "ablated"), beside="michel_areas"
)
def by_measure(results: Results) -> Drawn:
    """BLEU by steps of pruning, by measure."""
    notes = (
        "Measures but importance are compared as they are, over all layers. Output norm needs "
        "neither labels nor a gradient: an order that does not beat it has learnt little. Table "
        "michel_areas has these and more orders.",
        *describe_ranked(results),
    )
    return orders_figure([measured_points(results)], BLEU, notes, _BY_MEASURE)


@exhibits.figure(
    "michel_means", needs=("profiles", "more_measures", "ablated"), beside="michel_areas"
)
def by_means(results: Results) -> Drawn:
    """BLEU where pruned heads give zeros or their mean output."""
    notes = (
        "Zeros may be an output that a head never has; its mean over real positions of the text "
        "that importance is measured on is a constant too, and can be folded into the bias of W_O "
        "(`scripts/remove.py --means`). Mean ablation orders heads by how much the loss rises "
        "where the head alone gives its mean; heads then give zeros as in the other orders.",
        *describe_ranked(results),
    )
    return orders_figure([measured_points(results)], BLEU, notes, _BY_MEANS)
