"""All figures of heads removed from trained models (Michel et al.)."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from headcount.base.settings.ablation import AblationSettings
from headcount.base.settings.importance import ImportanceSettings
from headcount.base.settings.model import ModelSettings
from headcount.findings.file_lists import NamedFigure, any_files, some_files
from headcount.findings.masking import describe_tests
from headcount.findings.michel import curves, maps, pruning, single, training
from headcount.findings.michel.metric import BLEU, Metric
from headcount.findings.michel.speed import describe_timing, speed_table
from headcount.findings.michel.speed_figure import draw_speed
from headcount.findings.published import michel
from headcount.findings.published.numbers import beside_ours
from headcount.findings.run_tables import gather
from headcount.findings.setting import describe_ranking, describe_setting, of_one_training

_PAPER = f"{beside_ours(michel.metric())} The paper's curves: {michel.source()}, figure"
_BANDS = (
    "Bands: bootstrap, 95 %, of the difference to all heads; hollow: a significant loss "
    f"(p < {pruning.LEVEL})."
)
_KINDS = {
    "enc_self": "enc: encoder self-attention",
    "dec_self": "dec: decoder self-attention",
    "dec_enc": "dec-enc: encoder-decoder attention",
}


@dataclass(frozen=True)
class FigureFiles:
    """What the figures are made from; files of a run lie below `<pair>/<run>/seed<k>/`."""

    ablation: list[Path] = some_files("ablation.csv of runs")
    facts: list[Path] = some_files("ablation.json, beside each of these")
    profiles: list[Path] = some_files("pruning_profile.csv of runs")
    speed: list[Path] = some_files("share_speed.csv of runs")
    training: list[Path] = any_files(
        "training_profile.csv of runs; none where no run is pruned during its training"
    )


def michel_figures(
    files: FigureFiles,
    model: ModelSettings,
    settings: AblationSettings,
    importance: ImportanceSettings,
) -> list[NamedFigure]:
    """Maps of single heads, transfer, curves by order and by kind, speed, training."""
    ablation = single.read_ablation(files.ablation)
    setting = f"{describe_tests(files.facts)} {describe_setting(model, ablation)}"
    ranked = f"{setting} {describe_ranking(settings, importance)}"
    timed = f"{describe_timing(files.speed)} {describe_setting(model, ablation)}"
    points = pruning.profile_points(gather(files.profiles, pruning.READ))
    drawn = [
        *single_figures(ablation, BLEU, setting),
        orders_figure([points, curves.printed_curves()], BLEU, f"{_PAPER} 3 and 6d. {ranked}"),
        _kinds_figure(points, ranked),
        _speed_figure(speed_table(files.speed), timed),
    ]
    if files.training:
        drawn.append(_training_figure(training.training_points(files.training), ranked))
    return drawn


def single_figures(ablation: pd.DataFrame, metric: Metric, setting: str) -> list[NamedFigure]:
    """Maps of single heads on the test sets, and their effects on two of them."""
    alone = single.single_table(ablation)
    shown = alone[alone["test_set"] != "dev"].astype({"delta": float})
    kinds = ", ".join(words for kind, words in _KINDS.items() if (shown["kind"] == kind).any())
    moved = single.transfer_points(ablation)
    return [
        NamedFigure(
            "michel_ablation",
            maps.draw_single(shown, metric),
            shown,
            f"{metric.initial} change when one head is masked, nothing retrained, by kind, layer "
            "and head; colours are linear up to half a point, then logarithmic. Dots: "
            f"p < {single.LEVEL} by paired bootstrap (nearly one-sided); rings: still so once "
            f"corrected for all heads (Holm). {of_one_training(f'test {metric.counted}')} {kinds}. "
            f"{setting}",
        ),
        NamedFigure(
            "michel_transfer",
            maps.draw_transfer(moved, metric),
            moved,
            f"{metric.initial} change on two test sets when a head is masked, a point per head; r "
            "is Pearson's. Where effects go far beyond 2 points, axes are linear up to there, then "
            f"logarithmic; dotted: the same effect on both. {setting}",
        ),
    ]


def orders_figure(tables: list[pd.DataFrame], metric: Metric, notes: str) -> NamedFigure:
    """Curves by order of pruning: ours, then those beside them; `notes` end the caption."""
    return NamedFigure(
        "michel_pruning",
        curves.draw_orders(tables, metric),
        tables[0],
        f"{metric.initial} as more and more heads of all kinds are pruned, nothing retrained, by "
        f"the order in which they go. {_BANDS} {of_one_training(f'test {metric.counted}')} {notes}",
    )


def _kinds_figure(points: pd.DataFrame, setting: str) -> NamedFigure:
    return NamedFigure(
        "michel_kinds",
        curves.draw_kinds([points, curves.printed_curves()]),
        points[points["scope"] != "all"],
        "BLEU as heads of one kind of attention are pruned, the other kinds whole, the least "
        f"important first. {_BANDS} {of_one_training('test sentences')} {_PAPER} 4. {setting}",
    )


def _speed_figure(table: pd.DataFrame, setting: str) -> NamedFigure:
    ours = table[table["source"] == "ours"]
    return NamedFigure(
        "michel_speed",
        draw_speed(ours),
        ours,
        "Speed without a share of heads, the least important ones, really removed, relative to the "
        "model with all heads. Bars: a standard deviation of the repeats on either side. Encode: "
        "one pass of the encoder over a batch, with the keys and values that the decoder takes "
        "from it; decode: steps of the beam search, encoder included, since a damaged model makes "
        f"other and longer translations. {setting}",
    )


def _training_figure(points: pd.DataFrame, setting: str) -> NamedFigure:
    return NamedFigure(
        "michel_training",
        curves.draw_training(points),
        points,
        "Percent of a checkpoint's own BLEU that is kept as more and more of its heads are pruned, "
        "by its own importance, at points of the training; bands: bootstrap, 95 %, of the "
        "difference to all heads; dotted: what equally important heads would give. "
        f"{of_one_training('test sentences')} "
        f"{_PAPER} 5. {setting}",
    )
