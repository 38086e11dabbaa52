"""All figures of heads removed from trained models (Michel et al.)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headcount.base.settings.ablation import AblationSettings
from headcount.base.settings.importance import ImportanceSettings
from headcount.base.settings.model import ModelSettings
from headcount.findings import michel_curves as curves
from headcount.findings import michel_maps as maps
from headcount.findings import michel_pruning as pruning
from headcount.findings import michel_single as single
from headcount.findings import michel_training as training
from headcount.findings.figures import Drawn, use_style, write_figure
from headcount.findings.masking import describe_tests
from headcount.findings.michel_speed import speed_table
from headcount.findings.michel_speed_figure import draw_speed
from headcount.findings.published import michel
from headcount.findings.setting import describe_ranking, describe_setting


@dataclass(frozen=True)
class FigureFiles:
    """What the figures are made from; files of a run lie below `<pair>/<run>/seed<k>/`."""

    ablation: list[Path]  # ablation.csv
    facts: list[Path]  # ablation.json, beside it
    profiles: list[Path]  # pruning_profile.csv
    speed: list[Path]  # share_speed.csv
    training: list[Path]  # training_profile.csv, where runs are pruned during training


def write_figures(
    files: FigureFiles,
    model: ModelSettings,
    ablation: AblationSettings,
    importance: ImportanceSettings,
    folder: Path,
    origin: dict[str, Any],
) -> None:
    """Write michel_ablation, _transfer, _pruning, _kinds, _speed, and _training, into a folder.

    The last only if a run is pruned during its training. Raises UserError for files that lack
    what a figure needs, before it writes any.
    """
    use_style()
    for figure in michel_figures(files, model, ablation, importance):
        write_figure(figure.drawing, figure.data, folder / figure.name, figure.caption, origin)


def michel_figures(
    files: FigureFiles,
    model: ModelSettings,
    settings: AblationSettings,
    importance: ImportanceSettings,
) -> list[Drawn]:
    """Maps of single heads, transfer, curves by order and by kind, speed, training."""
    ablation = single.read_ablation(files.ablation)
    setting = f"{describe_tests(files.facts)} {describe_setting(model, ablation)}"
    ranked = f"{setting} {describe_ranking(settings, importance)}"
    alone = single.single_table(ablation)
    alone = alone[alone["source"] == "ours"].astype({"delta": float})
    alone = alone[alone["test_set"] != "dev"]
    moved = single.transfer_points(ablation)
    points = pruning.read_profiles(files.profiles)
    timed = speed_table(files.speed)
    timed = timed[timed["source"] == "ours"]
    paper = f"The paper's curves: {michel.source()}, figure"
    drawn = [
        Drawn(
            "michel_ablation",
            maps.draw_single(alone),
            alone,
            "BLEU change when one head is masked, nothing retrained, by kind, layer and head; "
            f"colours are linear up to half a point, then logarithmic. Dots: p < {single.LEVEL} by "
            "paired bootstrap; rings: still so once corrected for all heads (Holm). enc: encoder "
            "self-attention, dec: decoder self-attention, dec-enc: encoder-decoder attention. "
            f"{setting}",
        ),
        Drawn(
            "michel_transfer",
            maps.draw_transfer(moved),
            moved,
            "BLEU change on two test sets when a head is masked, a point per head; r is Pearson's. "
            "Axes are linear up to 2 points, then logarithmic; dotted: the same effect on both. "
            f"{setting}",
        ),
        Drawn(
            "michel_pruning",
            curves.draw_orders(points),
            points,
            "BLEU as more and more heads of all kinds are pruned, nothing retrained, by the order "
            "in which they go. Bands: bootstrap, 95 %, of the difference to all heads; hollow: a "
            f"significant loss (p < {pruning.LEVEL}). {paper} 3 and 6d. {ranked}",
        ),
        Drawn(
            "michel_kinds",
            curves.draw_kinds(points),
            points[points["scope"] != "all"],
            "BLEU as heads of one kind of attention are pruned, the other kinds whole, the least "
            "important first. Bands: bootstrap, 95 %, of the difference to all heads; hollow: a "
            f"significant loss (p < {pruning.LEVEL}). {paper} 4. {ranked}",
        ),
        Drawn(
            "michel_speed",
            draw_speed(timed),
            timed,
            "Speed without a share of heads, the least important ones, really removed, relative to "
            "the model with all heads. Bars: a standard deviation of the repeats on either side. "
            "Encode: one pass of the encoder over a batch; decode: beam search of whole sentences, "
            f"encoder included. {setting}",
        ),
    ]
    if files.training:
        trained = training.training_points(files.training)
        words = (
            "Percent of a checkpoint's own BLEU that is kept as more and more of its heads are "
            "pruned, by its own importance, at points of the training; dotted: what equally "
            f"important heads would give. {paper} 5. {ranked}"
        )
        drawn.append(Drawn("michel_training", curves.draw_training(trained), trained, words))
    return drawn
