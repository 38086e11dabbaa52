"""All figures of head pruning: Voita's 6, 7, 9 and 10, and three that the paper lacks."""

import pandas as pd

from headcount.base.settings.train import GatesSettings
from headcount.findings import exhibits
from headcount.findings.figures import Drawn
from headcount.findings.masking import describe_cover
from headcount.findings.published import voita
from headcount.findings.published.numbers import beside_ours
from headcount.findings.results import Results
from headcount.findings.setting import OVER_SEEDS
from headcount.findings.voita_pruning import drawings, gate_figures
from headcount.findings.voita_pruning.comparison import masked, untuned
from headcount.findings.voita_pruning.measured import (
    all_scores,
    describe_pruning,
    describe_scored,
    describe_spent,
    describe_untuned,
    pruned_models,
)
from headcount.findings.voita_pruning.method_points import method_points
from headcount.findings.voita_pruning.points import encoder_points, kind_points, layer_points
from headcount.findings.voita_pruning.records import records
from headcount.findings.voita_pruning.removal_speed import speed_with_bleu, timed
from headcount.findings.voita_pruning.speed_figure import draw_speed

_POINTS = "The paper's points are read off its drawing; it prints neither λ nor spread."


@exhibits.figure("voita_fig6", "Figure 6: distribution of a gate", needs=("pruned_runs",))
def fig6(results: Results) -> Drawn:
    """Distribution of one gate."""
    gates: GatesSettings = results.settings["gates"]
    table = gate_figures.distributions(gates)
    return Drawn(
        gate_figures.draw_distributions(table),
        table,
        "Distribution of one gate, in closed form. Left: the Concrete distribution, and what it "
        "becomes when stretched beyond 0 and 1 and cut there. Right: Hard Concrete at three "
        "locations log α. Lines: density (left scale; that of Concrete grows without end at 0 and "
        "1, and is drawn up to 4). Bars: probability of exactly 0 and exactly 1 (right scale), "
        f"beside the ends so that they can be told apart. {voita.source()} prints the masses in "
        f"brackets; they belong to temperature {gate_figures.PAPER.temperature:g}, while its code "
        f"trains with 0.33. This experiment has {gates.temperature:g}.",
    )


@exhibits.figure("voita_fig7", "Figure 7: BLEU by encoder heads left", needs=("pruned_bleu",))
def fig7(results: Results) -> Drawn:
    """BLEU by encoder heads left."""
    points = encoder_points(records(results))
    found = points.loc[points["source"] == "ours", "spread"].unique()
    ours = (
        f"Bars: {' or '.join(found)}, with one seed of the difference to the control, laid around "
        f"the control. {describe_cover(found)}"
        if len(found)
        else "This experiment has no gates run on encoder self-attention from the baseline."
    )
    return Drawn(
        drawings.draw_encoder(points),
        points,
        "BLEU by the number of encoder self-attention heads left, fine-tuned with gates on these "
        "alone while the decoder is frozen; each point is a λ. The control was fine-tuned for as "
        f"many updates with λ = 0. {ours} Right: {voita.source()}, Figure 7; every panel has a "
        f"scale of its own. {_POINTS} {beside_ours(voita.metric())} "
        f"{describe_scored(results)}",
    )


@exhibits.figure("voita_fig9", "Figure 9: heads left of each kind", needs=("pruned_heads",))
def fig9(results: Results) -> Drawn:
    """Heads left of each kind by heads pruned."""
    points = kind_points(pruned_models(results))
    return Drawn(
        drawings.draw_kinds(points),
        points,
        "Heads left of each kind of attention as more are pruned, with gates on all kinds; "
        "each point is a λ. enc: encoder self-attention, dec: decoder self-attention, dec-enc: "
        f"decoder-encoder attention. {_ours(points)}Right: {voita.source()}, Figure 9. {_POINTS} "
        f"{describe_pruning(results)}",
    )


@exhibits.figure(
    "voita_fig10", "Figure 10: heads left in the decoder's layers", needs=("pruned_heads",)
)
def fig10(results: Results) -> Drawn:
    """Heads left in the decoder's layers by heads pruned."""
    points = layer_points(pruned_models(results), results.model.grid)
    return Drawn(
        drawings.draw_layers(points),
        points,
        "Heads left in the decoder's layers as more heads of that kind are pruned, with gates "
        "on all kinds; each point is a λ. Two neighbouring layers are taken together where a "
        "decoder has more than three, as in the paper. "
        f"{_ours(points)}Below: {voita.source()}, Figure 10. {_POINTS} {describe_pruning(results)}",
    )


def _ours(points: pd.DataFrame) -> str:
    """What bars are, or that there are no points of ours."""
    ours = points[points["source"] == "ours"]
    none = "" if len(ours) else "This experiment has no gates run on all kinds from the baseline. "
    several = ours["seed"].nunique() > 1
    return none + (f"Bars: standard deviation over seeds. {OVER_SEEDS} " if several else "")


@exhibits.figure(
    "voita_methods",
    "BLEU by heads left, for every way to choose them",
    needs=("pruned_bleu", "updates"),
    uses=("untuned", "untuned_facts"),
)
def methods(results: Results) -> Drawn:
    """BLEU by heads left, for every way to choose them."""
    silenced = pd.DataFrame(untuned(pruned_models(results), masked(results)))
    points = method_points(records(results), silenced)
    measured = [describe_spent(results), describe_untuned(results), describe_scored(results)]
    spreads = points["spread"].unique()
    shown = points[points["test_set"] == points.groupby("pair")["test_set"].transform("first")]
    others = "Other test sets are in the numbers. " if len(shown) < len(points) else ""
    return Drawn(
        drawings.draw_methods(shown),
        points,
        "Change in BLEU (below 0: worse) by the number of heads left, for gates, the most "
        "important heads of the start "
        "model (ranked), random heads (drawn), and the heads that gates kept trained from scratch. "
        "Fine-tuned: all for as many updates, against the λ = 0 control; scratch: by the whole "
        "recipe. Not fine-tuned: the baseline's own weights with heads silenced, against that "
        "model with all heads. By start: gates on models trained with masked heads, each against "
        "its own control. Heads are those that the scope may lose; markers at one number of them "
        f"stand side by side. Scales differ. {others}Bars: "
        f"{' or '.join(spreads)}. {describe_cover(spreads)} {' '.join(filter(None, measured))}",
    )


@exhibits.figure("voita_gates", "Gates over fine-tuning", needs=("pruned_heads", "gates"))
def gates(results: Results) -> Drawn:
    """Gates over fine-tuning."""
    table = gate_figures.trajectories(results.files("gates"), pruned_models(results))
    return Drawn(
        gate_figures.draw_gates(table),
        table,
        "Gates over fine-tuning: probability that a gate is not 0, at every validation. A row is a "
        "head, kinds and their layers from the first (top) to the last, divided by lines. enc: "
        "encoder self-attention, dec: decoder self-attention, dec-enc: decoder-encoder attention. "
        f"Titles say how many gated heads are left at the end. {describe_pruning(results)}",
    )


@exhibits.figure("voita_speed", "BLEU by time and by size", needs=("pruned_bleu", "pruned_speed"))
def speed(results: Results) -> Drawn:
    """BLEU by time and by size."""
    table = speed_with_bleu(timed(results), all_scores(results))
    return Drawn(
        draw_speed(table),
        table,
        "BLEU on the first test set by time per sentence and by size, of models whose heads were "
        "really removed. Time: median over repeats in which the models take turns; bars from the "
        "fastest repeat to the slowest. Encode: one pass of the encoder over a batch; decode: beam "
        f"search of whole sentences, encoder included. A point is a model of one seed. "
        f"{describe_scored(results)}",
    )
