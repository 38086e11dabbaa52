"""All figures of heads removed from trained models (Michel et al.)."""

import pandas as pd

from headcount.findings import exhibits
from headcount.findings.figures import Drawn
from headcount.findings.michel import curves, maps, setting, single
from headcount.findings.michel.metric import BLEU, Metric
from headcount.findings.michel.pruning import LEVEL
from headcount.findings.michel.speed import speed_table
from headcount.findings.michel.speed_figure import draw_speed
from headcount.findings.michel.tables import read_profiles
from headcount.findings.michel.training import training_points
from headcount.findings.published import michel
from headcount.findings.published.numbers import beside_ours
from headcount.findings.results import Results
from headcount.findings.setting import of_one_training

_PAPER = f"{beside_ours(michel.metric())} The paper's curves: {michel.source()}, figure"
_BANDS = (
    "Bands: bootstrap, 95 %, of the difference to all heads; hollow: a significant loss "
    f"(p < {LEVEL})."
)
_KINDS = {
    "enc_self": "enc: encoder self-attention",
    "dec_self": "dec: decoder self-attention",
    "dec_enc": "dec-enc: encoder-decoder attention",
}


@exhibits.figure("michel_ablation", "Maps of BLEU without each head", needs=("ablated",))
def ablation(results: Results) -> Drawn:
    """Maps of what each head is worth alone."""
    table = results.read(single.read_ablation, "ablation")
    return single_figure(table, BLEU, setting.scored(results))


@exhibits.figure(
    "michel_transfer", "Figure 2: effects of heads on two test sets", needs=("ablated",)
)
def transfer(results: Results) -> Drawn:
    """Effects of heads on two test sets."""
    table = results.read(single.read_ablation, "ablation")
    return transfer_figure(table, BLEU, setting.scored(results))


@exhibits.figure(
    "michel_pruning", "Figure 3: BLEU by order of pruning", needs=("profiles", "ablated")
)
def pruning(results: Results) -> Drawn:
    """BLEU by order of pruning."""
    tables = [results.read(read_profiles, "profiles"), curves.printed_curves()]
    return orders_figure(tables, BLEU, f"{_PAPER} 3 and 6d. {setting.ranked(results)}")


@exhibits.figure(
    "michel_kinds", "Figure 4: BLEU by kind of attention", needs=("profiles", "ablated")
)
def kinds(results: Results) -> Drawn:
    """BLEU as heads of one kind are pruned."""
    points = results.read(read_profiles, "profiles")
    return Drawn(
        curves.draw_kinds([points, curves.printed_curves()]),
        points[points["scope"] != "all"],
        "BLEU as heads of one kind of attention are pruned, the other kinds whole, the least "
        f"important first. {_BANDS} {of_one_training('test sentences')} {_PAPER} 4. "
        f"{setting.ranked(results)}",
    )


@exhibits.figure(
    "michel_speed", "Speed by share of heads removed", needs=("share_speed", "ablation")
)
def speed(results: Results) -> Drawn:
    """Speed by share of heads removed."""
    table = results.read(speed_table, "share_speed")
    ours = table[table["source"] == "ours"]
    return Drawn(
        draw_speed(ours),
        ours,
        "Speed without a share of heads, the least important ones, really removed, relative to the "
        "model with all heads. Bars: a standard deviation of the repeats on either side. Encode: "
        "one pass of the encoder over a batch, with the keys and values that the decoder takes "
        "from it; decode: steps of the beam search, encoder included, since a damaged model makes "
        f"other and longer translations. {setting.timed(results)}",
    )


@exhibits.figure(
    "michel_training",
    "Figure 5: heads pruned at points of the training",
    needs=("training", "ablated"),
)
def training(results: Results) -> Drawn:
    """What is kept as heads are pruned, at points of the training."""
    points = results.read(training_points, "training")
    return Drawn(
        curves.draw_training(points),
        points,
        "Percent of a checkpoint's own BLEU that is kept as more and more of its heads are pruned, "
        "by its own importance, at points of the training; bands: bootstrap, 95 %, of the "
        "difference to all heads; dotted: what equally important heads would give. "
        f"{of_one_training('test sentences')} {_PAPER} 5. {setting.ranked(results)}",
    )


def single_figure(ablation: pd.DataFrame, metric: Metric, notes: str) -> Drawn:
    """Maps of single heads on the test sets; `notes` end the caption."""
    alone = single.single_table(ablation)
    shown = alone[alone["test_set"] != "dev"].astype({"delta": float})
    kinds = ", ".join(words for kind, words in _KINDS.items() if (shown["kind"] == kind).any())
    return Drawn(
        maps.draw_single(shown, metric),
        shown,
        f"{metric.initial} change when one head is masked, nothing retrained, by kind, layer "
        "and head; colours are linear up to half a point, then logarithmic. Dots: "
        f"p < {single.LEVEL} by paired bootstrap (nearly one-sided); rings: still so once "
        f"corrected for all heads (Holm). {of_one_training(f'test {metric.counted}')} {kinds}. "
        f"{notes}",
    )


def transfer_figure(ablation: pd.DataFrame, metric: Metric, notes: str) -> Drawn:
    """The effects of single heads on two test sets; `notes` end the caption."""
    moved = single.transfer_points(ablation)
    return Drawn(
        maps.draw_transfer(moved, metric),
        moved,
        f"{metric.initial} change on two test sets when a head is masked, a point per head; r "
        "is Pearson's. Where effects go far beyond 2 points, axes are linear up to there, then "
        f"logarithmic; dotted: the same effect on both. {notes}",
    )


def orders_figure(tables: list[pd.DataFrame], metric: Metric, notes: str) -> Drawn:
    """Curves by order of pruning: ours, then those beside them; `notes` end the caption."""
    return Drawn(
        curves.draw_orders(tables, metric),
        tables[0],
        f"{metric.initial} as more and more heads of all kinds are pruned, nothing retrained, by "
        f"the order in which they go. {_BANDS} {of_one_training(f'test {metric.counted}')} {notes}",
    )
