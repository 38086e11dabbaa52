"""All figures of HeadMask: 1 to 5, importance of every head, and mask frequency."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from headcount.base.settings.importance import ImportanceSettings
from headcount.base.settings.model import ModelSettings
from headcount.findings import masking
from headcount.findings.figures import Drawn
from headcount.findings.file_lists import some_files
from headcount.findings.headmask import importance_figures, masking_figures
from headcount.findings.headmask.frequency_figure import draw_frequency
from headcount.findings.headmask.importance import read_importance
from headcount.findings.headmask.mask_frequency import read_masks
from headcount.findings.run_tables import BASE
from headcount.findings.setting import (
    OVER_SEEDS,
    describe_importance,
    describe_setting,
    importance_unit,
)

_OF_ONE_MODEL = "None of these is an interval of the difference between two models."


@dataclass(frozen=True)
class FigureFiles:
    """What the figures are made from; each file lies below `<pair>/<run>/seed<k>/`."""

    masks: list[Path] = some_files("masks.csv of runs")
    importance: list[Path] = some_files("importance.csv of runs")
    masking: list[Path] = some_files("headmask.csv of runs")
    facts: list[Path] = some_files("headmask.json, beside each of these")


def headmask_figures(
    files: FigureFiles, model: ModelSettings, importance: ImportanceSettings
) -> list[Drawn]:
    """The paper's figures, and two that it lacks."""
    heads = importance_figures.distribution(read_importance(files.importance))
    runs = list(heads["run"].unique())
    rows = masking.read_masking(files.masking)
    tests = masking.describe_tests(files.facts)
    measured = f"{tests} {describe_importance(importance)}"
    setting = f"{describe_importance(importance)} {describe_setting(model, heads)}"
    return [
        *_base_figures(rows, model, measured),
        *_method_figures(rows, runs, model, measured),
        *_importance_figures(heads, runs, setting, importance_unit(importance)),
        _frequency_figure(read_masks(files.masks), describe_setting(model, heads)),
    ]


def _base_figures(rows: pd.DataFrame, model: ModelSettings, measured: str) -> list[Drawn]:
    """Figures 1 and 2, of the baseline alone."""
    base = rows[rows["run"] == BASE]
    groups, cumulative = masking.group_points(base), masking.cumulative_points(base)
    setting = f"{measured} {describe_setting(model, rows if base.empty else base)}"
    return [
        Drawn(
            "headmask_fig1",
            masking_figures.draw_groups(groups),
            groups,
            f"BLEU of the {BASE} when one group of heads is masked, without retraining. Heads are "
            f"ranked by importance over the whole model. {_spread(groups)} {setting}",
        ),
        Drawn(
            "headmask_fig2",
            masking_figures.draw_cumulative(cumulative),
            cumulative,
            f"BLEU of the {BASE} as more and more heads are masked, without retraining, from "
            f"either end of the ranking by importance. {_spread(cumulative)} {setting}",
        ),
    ]


def _method_figures(
    rows: pd.DataFrame, runs: list[str], model: ModelSettings, measured: str
) -> list[Drawn]:
    """Figures 4 and 5, of every run."""
    groups, cumulative = masking.group_points(rows), masking.cumulative_points(rows)
    heads, setting = model.grid.size, f"{measured} {describe_setting(model, rows)}"
    by_n = masking_figures.panels_by_n(cumulative, heads)
    return [
        Drawn(
            "headmask_fig4",
            masking_figures.draw_groups_by_method(groups, runs),
            groups,
            "BLEU when one group of heads is masked, by training method; at the ends no mask, and "
            "as many random heads. Groups are those of each model's own ranking by importance. "
            f"{_spread(groups)} {_OF_ONE_MODEL} {setting}",
        ),
        Drawn(
            "headmask_fig5",
            masking_figures.draw_cumulative_by_n(cumulative, heads, runs),
            cumulative,
            "BLEU as more and more heads are masked, by training method; a panel for each number N "
            f"of heads masked in training. {_which_n(by_n)}Heads are ranked by each model's own "
            f"importance. {_spread(cumulative)} {_OF_ONE_MODEL} {setting}",
        ),
    ]


def _importance_figures(
    heads: pd.DataFrame, runs: list[str], setting: str, unit: str
) -> list[Drawn]:
    several = heads["seed"].nunique() > 1
    seeds = " Heads of all seeds together; lines are means over seeds, bands ± their deviation. "
    seeds += OVER_SEEDS
    return [
        Drawn(
            "headmask_fig3",
            importance_figures.draw_distribution(heads, runs, unit),
            heads,
            "Distribution of the importance of heads, by training method. Left: every head a dot; "
            "box and whiskers: quartiles and extremes. Right: heads by rank, relative to the mean "
            "head of their model; a flat line would be equal heads."
            f"{seeds if several else ''} {setting}",
        ),
        Drawn(
            "headmask_heads",
            importance_figures.draw_heads(heads),
            heads,
            "Importance of every head, relative to the mean head of its model. enc: encoder "
            "self-attention, dec: decoder self-attention, dec-enc: encoder-decoder attention, each "
            f"followed by its layer. Grey: no such head. {setting}",
        ),
    ]


def _frequency_figure(masks: pd.DataFrame, setting: str) -> Drawn:
    return Drawn(
        "headmask_frequency",
        draw_frequency(masks),
        masks,
        "Share of updates that masked each head, over training; heads of a kind from the first "
        "layer (top) to the last. A bright line is a head that is masked in nearly every update "
        f"and hardly learns. {setting}",
    )


def _spread(points: pd.DataFrame) -> str:
    """What error bars and bands of a figure mean.

    With one seed a bar says how sure the change from no mask is, not the BLEU at its centre.
    """
    exact = points.loc[~points["order"].str.startswith("random"), "spread"].unique()
    drawn = points["spread"].eq(masking.DRAWS).any()
    words = f"Error bars and bands: {' or '.join(exact)}"
    words += f"; of random heads: {masking.DRAWS} (and seeds)." if drawn else "."
    return f"{words} {masking.describe_cover(exact)}"


def _which_n(panels: list[tuple[tuple, pd.DataFrame]]) -> str:
    """Says so if the runs do not have the two values of N that the paper compares."""
    counts = {key[-1] for key, _ in panels}
    if counts == {0}:
        return "No run of this experiment masks heads in training. "
    return "" if len(counts) > 1 else "This experiment has one N only; the paper compares two. "
