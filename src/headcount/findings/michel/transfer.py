"""Whether heads matter alike on two test sets: a table of correlations, and a point per head."""

from itertools import combinations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from headcount.base.addresses import KINDS
from headcount.findings import exhibits
from headcount.findings.figures import (
    COLOURS,
    GREY,
    Drawn,
    legend_above,
    panels,
    signed,
    title_words,
)
from headcount.findings.kinds import WORDS, kind_words
from headcount.findings.michel.measured import BLEU, Metric, describe_scored, masked_heads
from headcount.findings.published import michel
from headcount.findings.published.numbers import with_printed
from headcount.findings.results import BASE, HEAD, KEYS, Results
from headcount.findings.setting import of_one_training
from headcount.findings.significance import correlate
from headcount.findings.tables import NONE, Table, fill_empty, p_value, run_cells, with_bounds

_TESTS = [*KEYS, "test_set", "other_test_set"]
POINTS = [*_TESTS, *HEAD, "delta", "other_delta"]
COLUMNS = [*_TESTS, "kind", "heads", "pearson", "pearson_low", "pearson_high", "pearson_p"]
COLUMNS += ["spearman", "spearman_low", "spearman_high", "spearman_p"]
_STRAIGHT = 2  # points: axes of the scatter are linear up to here, if they go far beyond


@exhibits.table("michel_transfer", needs=("ablated",))
def transfer(results: Results) -> Table:
    """Figure 2 as a table: effects of heads on two test sets."""
    printed = (
        f"The paper's row: {michel.SOURCE}, newstest2013 against MTNT.",
        michel.BESIDE_OURS,
        *describe_scored(results),
    )
    paper = {"pair": michel.PAIR, "run": BASE, "test_set": "newstest2013", "kind": "all"}
    paper |= {"other_test_set": "mtnt", "pearson": michel.transfer()}
    ours = masked_heads(results)
    return transfer_table(ours, pd.DataFrame([paper]), BLEU, printed)


def transfer_table(
    ablation: pd.DataFrame, printed: pd.DataFrame, metric: Metric, notes: tuple[str, ...]
) -> Table:
    """Correlations of effects, then a paper's rows of `correlations`; `notes` come last."""
    tidy = with_printed(correlations(transfer_points(ablation)), printed)
    rows = []
    for row in tidy.to_dict("records"):
        cells = run_cells(*(row[key] for key in KEYS))
        cells["test sets"] = f"{row['test_set']}, {row['other_test_set']}"
        cells |= {"kind": kind_words(row["kind"]), "heads": str(row["heads"]) or NONE}
        for name in ("pearson", "spearman"):
            found = (row[name], row[f"{name}_low"], row[f"{name}_high"])
            cells[f"{name.title()} r"] = with_bounds(*found)
            cells[f"p ({name.title()})"] = p_value(row[f"{name}_p"])
        rows.append(cells | {"source": row["source"]})
    return Table(
        tidy,
        pd.DataFrame(rows),
        f"Correlation, over heads, of the {metric.word} change on two test sets when the head is "
        "masked. Near 1, the same heads matter on both.",
        (
            "Intervals (95 %) by bootstrap over heads, p by shuffling them. Both sides have the "
            f"noise of their {metric.counted}, which lowers the correlation.",
            of_one_training("heads"),
            *notes,
        ),
    )


def transfer_points(ablation: pd.DataFrame) -> pd.DataFrame:
    """Effects of every head on two test sets: columns of `POINTS`.

    A row per head for each two test sets, in the order of the file with dev last.
    """
    single = ablation[ablation["order"] == "single"]
    parts = []
    for key, found in single.groupby(KEYS, sort=False):
        first, *others = found["test_set"].unique()  # dev comes first in the file
        by_test = {test: rows.set_index(HEAD)["delta"] for test, rows in found.groupby("test_set")}
        for one, other in combinations([*others, first], 2):
            both = pd.DataFrame({"delta": by_test[one], "other_delta": by_test[other]})
            names = dict(zip(_TESTS, (*key, one, other), strict=True))
            parts.append(both.reset_index().assign(**names))
    return pd.concat(parts, ignore_index=True)[POINTS]


def correlations(points: pd.DataFrame) -> pd.DataFrame:
    """One model, two test sets and a kind, or all heads, a row: columns of `COLUMNS`.

    Raises UserError for fewer than four heads in all. A kind has a row if it has four heads or
    more, and is not the only one. Empty: one side is constant.
    """
    rows = []
    for key, found in points.groupby(_TESTS, sort=False):
        parts = {kind: found[found["kind"] == kind] for kind in KINDS}
        for kind, heads in ({"all": found} | parts).items():
            if kind == "all" or 4 <= len(heads) < len(found):
                sides = heads["delta"].to_numpy(), heads["other_delta"].to_numpy()
                cells = [*correlate(*sides, ranks=False), *correlate(*sides, ranks=True)]
                rows.append((*key, kind, len(heads), *cells))
    return fill_empty(pd.DataFrame(rows, columns=COLUMNS))


@exhibits.figure("michel_transfer", needs=("ablated",), beside="michel_transfer")
def transfer_scatter(results: Results) -> Drawn:
    """Figure 2: effects of heads on two test sets."""
    return transfer_figure(masked_heads(results), BLEU, describe_scored(results))


def transfer_figure(ablation: pd.DataFrame, metric: Metric, notes: tuple[str, ...]) -> Drawn:
    """The effects of single heads on two test sets; `notes` come last."""
    points = transfer_points(ablation)
    return Drawn(
        _draw(points, metric),
        points,
        f"{metric.initial} change on two test sets when a head is masked, a point per head; r is "
        "Pearson's. On the dotted line the effect is the same on both.",
        (
            "Where effects go far beyond 2 points, axes are linear up to there, then logarithmic.",
            *notes,
        ),
    )


def _draw(points: pd.DataFrame, metric: Metric) -> Figure:
    """A panel per model and two test sets, a point per head; see `transfer_points`."""
    tasks = list(points.groupby(_TESTS, sort=False))
    figure, axes = panels(len(tasks), width=4.4, height=3.8)
    grey = {"color": GREY, "zorder": 0}
    for panel, ((pair, run, seed, test, other), rows) in zip(axes, tasks, strict=True):
        for kind, colour, marker in zip(KINDS, COLOURS, "os^", strict=False):
            of_kind = rows[rows["kind"] == kind]
            style = {"color": colour, "marker": marker, "s": 22, "alpha": 0.8, "linewidths": 0}
            style["clip_on"] = False  # points at the ends of the axes are drawn whole
            panel.scatter(of_kind["delta"], of_kind["other_delta"], label=WORDS[kind], **style)
        both = rows[["delta", "other_delta"]].to_numpy()
        found = correlate(*both.T, ranks=False)
        ends = [both.min(), both.max()]
        panel.plot(ends, ends, linewidth=0.8, linestyle=":", **grey)
        panel.axhline(0, linewidth=0.6, **grey)
        panel.axvline(0, linewidth=0.6, **grey)
        if np.abs(both).max() > 2 * _STRAIGHT:
            panel.set_xscale("symlog", linthresh=_STRAIGHT, base=2)
            panel.set_yscale("symlog", linthresh=_STRAIGHT, base=2)
        r = NONE if np.isnan(found.r) else f"{found.r:.2f}"
        words = f"{title_words(pair, run, seed=seed)}: r = {r}"
        panel.set_title(words, loc="left", fontsize="small")
        panel.set_xlabel(f"{metric.word} change on {test}")
        panel.set_ylabel(f"{metric.word} change on {other}")
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_formatter(lambda value, _: signed(value))
        # Both axes alike, with room for what lies at their ends.
        sides = panel.get_xlim(), panel.get_ylim()
        ends = min(low for low, _ in sides), max(high for _, high in sides)
        panel.set(xlim=ends, ylim=ends, aspect="equal")
    if points["kind"].nunique() > 1:
        legend_above(figure, axes)
    return figure
