"""The figures of HeadMask with their captions: 1 to 5, importance of every head, mask frequency."""

import pandas as pd

from headcount.findings import exhibits, masking
from headcount.findings.figures import Drawn
from headcount.findings.headmask import importance_figures, masking_figures
from headcount.findings.headmask.frequency_figure import draw_frequency
from headcount.findings.headmask.importance import describe_measured, read_importance
from headcount.findings.headmask.mask_frequency import read_masks
from headcount.findings.results import Results
from headcount.findings.run_tables import BASE
from headcount.findings.setting import (
    OVER_SEEDS,
    describe_importance,
    describe_setting,
    importance_unit,
)

_OF_ONE_MODEL = "None of these is an interval of the difference between two models."


@exhibits.figure(
    "headmask_fig1", "Figure 1: the baseline without one group of heads", needs=("masked",)
)
def fig1(results: Results) -> Drawn:
    """BLEU of the baseline with one group of heads masked."""
    base = _base(results)
    groups = masking.group_points(base)
    return Drawn(
        masking_figures.draw_groups(groups),
        groups,
        f"BLEU of the {BASE} when one group of heads is masked, without retraining. Heads are "
        f"ranked by importance over the whole model. {_spread(groups)} {_setting(results, base)}",
    )


@exhibits.figure(
    "headmask_fig2", "Figure 2: the baseline with more and more heads masked", needs=("masked",)
)
def fig2(results: Results) -> Drawn:
    """BLEU of the baseline with more and more heads masked."""
    base = _base(results)
    cumulative = masking.cumulative_points(base)
    return Drawn(
        masking_figures.draw_cumulative(cumulative),
        cumulative,
        f"BLEU of the {BASE} as more and more heads are masked, without retraining, from "
        f"either end of the ranking by importance. {_spread(cumulative)} {_setting(results, base)}",
    )


@exhibits.figure(
    "headmask_fig3", "Figure 3: distribution of the importance of heads", needs=("importance",)
)
def fig3(results: Results) -> Drawn:
    """Importance of all heads, by run."""
    heads = _heads(results)
    several = heads["seed"].nunique() > 1
    seeds = " Heads of all seeds together; lines are means over seeds, bands ± their deviation. "
    seeds += OVER_SEEDS
    return Drawn(
        importance_figures.draw_distribution(
            heads, _runs(results), importance_unit(results.ranking)
        ),
        heads,
        "Distribution of the importance of heads, by training method. Left: every head a dot; "
        "box and whiskers: quartiles and extremes. Right: heads by rank, relative to the mean "
        "head of their model; a flat line would be equal heads."
        f"{seeds if several else ''} {describe_measured(results)}",
    )


@exhibits.figure(
    "headmask_fig4", "Figure 4: every training method without one group of heads", needs=("masked",)
)
def fig4(results: Results) -> Drawn:
    """BLEU of every run with one group of heads masked."""
    rows = _rows(results)
    groups = masking.group_points(rows)
    return Drawn(
        masking_figures.draw_groups_by_method(groups, _runs(results)),
        groups,
        "BLEU when one group of heads is masked, by training method; at the ends no mask, and "
        "as many random heads. Groups are those of each model's own ranking by importance. "
        f"{_spread(groups)} {_OF_ONE_MODEL} {_setting(results, rows)}",
    )


@exhibits.figure(
    "headmask_fig5",
    "Figure 5: every training method with more and more heads masked",
    needs=("masked",),
)
def fig5(results: Results) -> Drawn:
    """BLEU of every run with more and more heads masked."""
    rows = _rows(results)
    cumulative = masking.cumulative_points(rows)
    by_n = masking_figures.panels_by_n(cumulative, results.runs)
    return Drawn(
        masking_figures.draw_cumulative_by_n(cumulative, results.runs, _runs(results)),
        cumulative,
        "BLEU as more and more heads are masked, by training method; a panel for each number N "
        f"of heads masked in training. {_which_n(by_n)}Heads are ranked by each model's own "
        f"importance. {_spread(cumulative)} {_OF_ONE_MODEL} {_setting(results, rows)}",
    )


@exhibits.figure("headmask_heads", "Importance of every head", needs=("importance",))
def heads(results: Results) -> Drawn:
    """A map of the heads of each model."""
    table = _heads(results)
    return Drawn(
        importance_figures.draw_heads(table),
        table,
        "Importance of every head, relative to the mean head of its model. enc: encoder "
        "self-attention, dec: decoder self-attention, dec-enc: encoder-decoder attention, each "
        f"followed by its layer, from 0. Grey: no such head. {describe_measured(results)}",
    )


@exhibits.figure(
    "headmask_frequency", "How often training masked each head", needs=("masks", "importance")
)
def frequency(results: Results) -> Drawn:
    """Masks of every head over training."""
    masks = results.read(read_masks, "masks")
    return Drawn(
        draw_frequency(masks),
        masks,
        "Share of updates that masked each head, over training; heads of a kind from the first "
        "layer (top) to the last. A bright line is a head that is masked in nearly every update "
        f"and hardly learns. {describe_setting(results, _heads(results))}",
    )


def _rows(results: Results) -> pd.DataFrame:
    return results.read(masking.read_masking, "masking")


def _base(results: Results) -> pd.DataFrame:
    rows = _rows(results)
    return rows[rows["run"] == BASE]


def _heads(results: Results) -> pd.DataFrame:
    return importance_figures.distribution(results.read(read_importance, "importance"))


def _runs(results: Results) -> list[str]:
    """Names of the runs, in the order in which every figure has them."""
    return list(_heads(results)["run"].unique())


def _setting(results: Results, rows: pd.DataFrame) -> str:
    """How BLEU and importance were measured, and on which of the runs; all if there are no rows."""
    runs = _rows(results) if rows.empty else rows
    tests = results.read(masking.describe_tests, "masking_facts")
    measured = f"{tests} {describe_importance(results.ranking)}"
    return f"{measured} {describe_setting(results, runs)}"


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
